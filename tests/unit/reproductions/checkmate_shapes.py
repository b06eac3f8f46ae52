"""Made-up runs in which measured tables and figures of `checkmate` show what the paper found, and ones that don't."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from experiments.engines import Protocol
from experiments.spec import Experiment
from tests.unit.reproductions.runs import Tables, checkpoints, facts

Shape = Callable[[Experiment], Tables]
COORDINATED, INDUCED = Protocol.COORDINATED, Protocol.COMMUNICATION_INDUCED
QUERIES = ("q1", "q3", "q8", "q12")
SPARK_S = 8.0  # so long that it would hide how protocols differ


class Case(NamedTuple):
    """A table or figure, runs that show what it claims, and for each of its checks runs by which that fails."""

    good: Shape
    bad: dict[str, Shape]


def query(experiment: Experiment) -> str:
    return getattr(experiment.workload, "query", experiment.workload.name).value


def protocol(experiment: Experiment) -> Protocol:
    return experiment.engine.protocol_run


def checkpointed(round_s: float = 0.9, partition_s: float = 0.05, invalid: int = 0) -> Shape:
    """Twelve checkpoints of each partition, all about as long; COOR has rounds too."""

    def tables(experiment: Experiment) -> Tables:
        noise = np.random.default_rng(experiment.seed)
        taken = [list(partition_s * noise.uniform(0.8, 1.2, 12)) for _ in range(4)]
        rows = [row for i, seconds in enumerate(taken) for row in checkpoints(f"op.{i}", seconds, invalid * (i == 0))]
        if protocol(experiment) is COORDINATED:
            rows += checkpoints("round", list(round_s * noise.uniform(0.8, 1.2, 12)))
        return {"partition_checkpoints": rows}

    return tables


def of_query(name: str, then: Shape, otherwise: Shape) -> Shape:
    return lambda experiment: (then if query(experiment) == name else otherwise)(experiment)


def killed_at_18(peak: float = 4.0, end: float = 1.0) -> Shape:
    """Latency of 2 s at the median and 4 s at p99, as a multiple of that after the kill and in the last 20 seconds."""

    def tables(experiment: Experiment) -> Tables:
        rows = []
        for second in range(0, 60, 2):
            factor = 1.0 if second < 18 else end if second >= 40 else peak
            p50_s = 2.0 * factor * (1 + 0.1 * np.sin(second + experiment.seed))
            rows.append({"second": second, "records": 10, "p50_s": p50_s, "p99_s": 2 * p50_s, "p999_s": 3 * p50_s})
        return {"latency": rows}

    return tables


def restarted(seconds: float) -> Shape:
    """One recovery, with restarts that differ a little by query, beside Spark's part."""
    spread = {"q1": 1.0, "q3": 1.05, "q8": 1.1, "q12": 0.95}

    def tables(experiment: Experiment) -> Tables:
        taken_s = seconds * spread.get(query(experiment), 1.0) * (1 + 0.02 * np.sin(len(experiment.name)))
        recovery = {"recovery": 0, "fault": 0, "faults": 1, "death_ns": 0, "detect_s": 1.0}
        restart = {"restart_s": SPARK_S + taken_s, "executor_s": SPARK_S}
        return {"recoveries": [recovery | restart | {"restore_s": 1.0, "catch_up_s": 4.0}]}

    return tables


def overhead(
    of_coordinated: float = 1.0, of_uncoordinated: float = 1.004, induced: tuple[float, float] = (1.4, 1.9)
) -> Shape:
    """Message overheads: CIC's at one record per message on one worker and on two, and a hundredth above 1 else."""

    def tables(experiment: Experiment) -> Tables:
        of_induced = induced[experiment.cluster.workers - 1] if experiment.engine.records_per_message == 1 else 1.01
        found = {COORDINATED: of_coordinated, INDUCED: of_induced}.get(protocol(experiment), of_uncoordinated)
        return {"runs": facts(experiment, message_overhead=found)}

    return tables


def by_protocol(**shapes: Shape) -> Shape:
    """Coordinated, uncoordinated and induced each by a shape of its own, or by that of `others`."""
    named = {COORDINATED: "coordinated", Protocol.UNCOORDINATED: "uncoordinated", INDUCED: "induced"}
    return lambda experiment: shapes.get(named[protocol(experiment)], shapes["others"])(experiment)


def each_query(ending: str, of_one: Shape, of_others: Shape, names: tuple[str, ...] = QUERIES) -> dict[str, Shape]:
    """Checks that each query has: one query at a time is bad."""
    return {f"{name}.{ending}": of_query(name, of_one, of_others) for name in names}


def latencies() -> Case:
    good, unfelt = killed_at_18(), killed_at_18(peak=1.2)
    lasting = by_protocol(induced=killed_at_18(end=2.0), others=good)
    return Case(good, each_query("kill_is_felt", unfelt, good) | each_query("returns_to_normal", lasting, good))


def sustaining(coordinated: float = 9900.0, uncoordinated: float = 9000.0, induced: float = 6000.0) -> Shape:
    """Sustainable rates of each protocol in a bracket of 5 %; 10,000 records/s without."""

    def tables(experiment: Experiment) -> Tables:
        rates = {COORDINATED: coordinated, Protocol.UNCOORDINATED: uncoordinated, INDUCED: induced}
        rate = rates.get(protocol(experiment), 10_000.0)
        return {"runs": facts(experiment, sustainable_rate=rate, unsustainable_rate=1.05 * rate)}

    return tables


def joined(*shapes: Shape) -> Shape:
    """The tables of all of them."""

    def tables(experiment: Experiment) -> Tables:
        return {name: rows for shape in shapes for name, rows in shape(experiment).items()}

    return tables


def steady(p50_s: float) -> Shape:
    """Latency about as high all the time."""

    def tables(experiment: Experiment) -> Tables:
        noise = np.random.default_rng(experiment.seed)
        seen = [p50_s * noise.uniform(0.9, 1.1) for _ in range(12)]
        rows = [
            {"second": 5 * i, "records": 9, "p50_s": p, "p99_s": 2 * p, "p999_s": 3 * p} for i, p in enumerate(seen)
        ]
        return {"latency": rows}

    return tables


def skews() -> Case:
    """COOR worst in all; and best in all."""
    slow = joined(sustaining(), steady(9.0), checkpointed(round_s=0.9, partition_s=0.9))
    fast = joined(sustaining(), steady(3.0), checkpointed(round_s=0.1, partition_s=0.1))
    good, bad = by_protocol(coordinated=slow, others=fast), by_protocol(coordinated=fast, others=slow)
    cells = product(QUERIES[1:], ("p50", "checkpoint"), (50, 80))
    return Case(good, dict.fromkeys([f"{q}.coordinated_worst_{what}_at_{load}" for q, what, load in cells], bad))


def on_cycle(lost: int = 0, invalid: int = 0) -> Shape:
    """The cyclic query with some results lost, and some checkpoints invalid, of 48."""
    window = {"window_start_ns": 0, "window_end_ns": 1, "exact": 500, "emitted": 500 - lost}
    quality = {"quality": [window | {"lost": lost, "duplicated": 0, "wrong": 0}]}
    return lambda experiment: quality | checkpointed(invalid=invalid)(experiment) | restarted(2.0)(experiment)


TIMES, TOO_SHORT = checkpointed(), checkpointed(round_s=0.08)
COUNTS = by_protocol(coordinated=checkpointed(), others=checkpointed(invalid=2))
MANY_INVALID = by_protocol(induced=checkpointed(invalid=3), others=checkpointed())
RESTARTS = by_protocol(coordinated=restarted(5.0), others=restarted(7.0))
LEADING = joined(sustaining(), by_protocol(coordinated=restarted(3.0), others=restarted(7.0)))
CASES = {
    "checkmate/fig-07": Case(
        sustaining(),
        each_query("coor_not_below_unc", sustaining(coordinated=7000.0), sustaining())
        | each_query("unc_not_below_cic", sustaining(induced=11_000.0), sustaining()),
    ),
    "checkmate/table-2": Case(
        overhead(),
        {
            "coor.about_1": overhead(of_coordinated=1.02),
            "unc.about_1": overhead(of_uncoordinated=1.02),
            "cic.grows_with_workers": overhead(induced=(1.9, 1.9)),
            "cic.about_2_at_one_record": overhead(induced=(1.1, 1.3)),
        },
    ),
    "checkmate/fig-08": Case(TIMES, each_query("coordinated_well_above", TOO_SHORT, TIMES, QUERIES[1:])),
    "checkmate/table-3": Case(
        COUNTS,
        each_query("coordinated_all_valid", checkpointed(invalid=1), COUNTS)
        | each_query("few_invalid", MANY_INVALID, COUNTS),
    ),
    "checkmate/fig-09": latencies(),
    "checkmate/fig-10": latencies(),
    "checkmate/fig-11": Case(
        RESTARTS,
        {
            "coordinated.not_slower_than_unc": by_protocol(uncoordinated=restarted(4.0), others=restarted(5.0)),
            "coordinated.not_slower_than_cic": by_protocol(induced=restarted(4.0), others=restarted(5.0)),
        },
    ),
}

CASES |= {
    "checkmate/fig-12": skews(),
    "checkmate/fig-13": Case(
        joined(sustaining(), restarted(6.0)),
        dict.fromkeys(("coordinated.no_faster_than_unc", "coordinated.no_faster_than_cic"), LEADING),
    ),
    "checkmate/table-4": Case(
        on_cycle(),
        {
            "unc.recovers_exactly": by_protocol(uncoordinated=on_cycle(lost=1), others=on_cycle()),
            "cic.recovers_exactly": by_protocol(induced=on_cycle(lost=1), others=on_cycle()),
            "invalid.few": on_cycle(invalid=3),
        },
    ),
}


def simulated(
    column: str, protocols: dict[str, float], queries: tuple[str, ...] = QUERIES, **on_50: float
) -> pd.DataFrame:
    """Simulated rows with a value for each protocol, on 50 workers another one where it is named."""
    about = {"replicate": 0, "run_id": None, "simulated": True, "records_per_message": 1}
    cells = product(queries, protocols, (10, 50))
    return pd.DataFrame(
        about
        | {"query": q, "protocol": p, "workers": w, column: on_50.get(p, protocols[p]) if w == 50 else protocols[p]}
        for q, p, w in cells
    )


def one_bad(name: str, bad: pd.DataFrame, good: pd.DataFrame) -> pd.DataFrame:
    """The rows of one query are those of the bad table."""
    return pd.concat([bad[bad["query"] == name], good[good["query"] != name]])


def bad_queries(
    ending: str, bad: pd.DataFrame, good: pd.DataFrame, names: tuple[str, ...] = QUERIES
) -> dict[str, pd.DataFrame]:
    return {f"simulated.{name}.{ending}": one_bad(name, bad, good) for name in names}


class Table(NamedTuple):
    """Simulated rows that show what is claimed, and for each check rows by which it fails."""

    good: pd.DataFrame
    bad: dict[str, pd.DataFrame]


def invalid(share: float, of_coordinated: float = 0.0) -> pd.DataFrame:
    """Simulated counts with this share of invalid checkpoints, of coordinated ones another."""
    table = simulated("invalid_share", {"COOR": of_coordinated, "UNC": share, "CIC": share})
    return table.assign(checkpoints=1000, invalid=1000 * table["invalid_share"])


RATES = {"none": 100.0, "COOR": 99.0, "UNC": 90.0, "CIC": 85.0}
TAKEN, OVERHEADS = {"COOR": 0.9, "UNC": 0.05, "CIC": 0.06}, {"COOR": 1.0, "UNC": 1.004, "CIC": 1.8}
RESTARTED = {"COOR": 0.01, "UNC": 0.2, "CIC": 0.1}
GOOD_RATES, GOOD_TIMES = simulated("sustainable_rate", RATES), simulated("mean", TAKEN)
FEW_INVALID = invalid(0.03)
SIMULATED = {
    "checkmate/fig-07": Table(
        GOOD_RATES,
        bad_queries("coor_not_below_unc", simulated("sustainable_rate", RATES, COOR=80.0), GOOD_RATES)
        | bad_queries("unc_not_below_cic", simulated("sustainable_rate", RATES, CIC=101.0), GOOD_RATES),
    ),
    "checkmate/table-2": Table(
        simulated("message_overhead", OVERHEADS, CIC=2.6),
        {
            "simulated.coor.about_1": simulated("message_overhead", OVERHEADS, CIC=2.6, COOR=1.02),
            "simulated.unc.about_1": simulated("message_overhead", OVERHEADS, CIC=2.6, UNC=1.02),
            "simulated.cic.grows_with_workers": simulated("message_overhead", OVERHEADS),
            "simulated.cic.about_2_at_one_record": simulated("message_overhead", OVERHEADS | {"CIC": 1.4}, CIC=1.9),
        },
    ),
    "checkmate/fig-08": Table(
        GOOD_TIMES,
        bad_queries("coordinated_well_above", simulated("mean", TAKEN, COOR=0.11), GOOD_TIMES, QUERIES[1:]),
    ),
    "checkmate/table-3": Table(
        FEW_INVALID,
        bad_queries("coordinated_all_valid", invalid(0.01, of_coordinated=0.001), FEW_INVALID)
        | bad_queries("few_invalid", invalid(0.06), FEW_INVALID),
    ),
    "checkmate/fig-11": Table(
        simulated("own_s", RESTARTED),
        {
            "simulated.coordinated.not_slower_than_unc": simulated("own_s", RESTARTED, UNC=0.009),
            "simulated.coordinated.not_slower_than_cic": simulated("own_s", RESTARTED, CIC=0.009),
        },
    ),
}


def failing_simulated() -> Iterator[tuple[str, str]]:
    """Each table or figure with each of its checks of simulated rows."""
    for id, table in SIMULATED.items():
        for check in table.bad:
            yield id, check


def failing() -> Iterator[tuple[str, str]]:
    """Each table or figure with each of its checks that is made to fail."""
    for id, case in CASES.items():
        for check in case.bad:
            yield id, check
