"""Made-up runs in which measured tables and figures of `checkmate` show what the paper found."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pandas as pd

from experiments.engines import ProtocolName
from experiments.spec import Experiment
from reproductions.checkmate.throughput import relative_to_none
from tests.unit.reproductions.runs import Tables, checkpoints, facts

Shape = Callable[[Experiment], Tables]
COORDINATED, INDUCED = ProtocolName.COORDINATED, ProtocolName.COMMUNICATION_INDUCED
QUERIES = ("q1", "q3", "q8", "q12")
SPARK_S = 8.0  # so long that it would hide how protocols differ


def query(experiment: Experiment) -> str:
    return getattr(experiment.workload, "query", experiment.workload.name).value


def protocol(experiment: Experiment) -> ProtocolName:
    return experiment.engine.protocol_run


def checkpointed(round_s: float = 0.9, partition_s: float = 0.05, invalid: int = 0, count: int = 12) -> Shape:
    """`count` checkpoints of each of four partitions, all about as long; COOR has rounds too."""

    def tables(experiment: Experiment) -> Tables:
        noise = np.random.default_rng(experiment.seed)
        taken = [list(partition_s * noise.uniform(0.8, 1.2, count)) for _ in range(4)]
        rows = [row for i, seconds in enumerate(taken) for row in checkpoints(f"op.{i}", seconds, invalid * (i == 0))]
        if protocol(experiment) is COORDINATED:
            rows += checkpoints("round", list(round_s * noise.uniform(0.8, 1.2, count)))
        return {"partition_checkpoints": rows}

    return tables


def killed_at_18() -> Shape:
    """Latency of 2 s at the median and 4 s at p99; after the kill four times that, until the last 20 seconds."""

    def tables(experiment: Experiment) -> Tables:
        rows = []
        for second in range(0, 60, 2):
            factor = 4.0 if 18 <= second < 40 else 1.0
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


def overhead() -> Shape:
    """Message overheads: CIC's at one record per message on one worker and on two, and a hundredth above 1 else."""

    def tables(experiment: Experiment) -> Tables:
        of_induced = (1.4, 1.9)[experiment.cluster.workers - 1] if experiment.engine.records_per_message == 1 else 1.01
        found = {COORDINATED: 1.0, INDUCED: of_induced}.get(protocol(experiment), 1.004)
        return {"runs": facts(experiment, message_overhead=found)}

    return tables


def by_protocol(**shapes: Shape) -> Shape:
    """Coordinated, uncoordinated and induced each by a shape of its own, or by that of `others`."""
    named = {COORDINATED: "coordinated", ProtocolName.UNCOORDINATED: "uncoordinated", INDUCED: "induced"}
    return lambda experiment: shapes.get(named[protocol(experiment)], shapes["others"])(experiment)


def sustaining() -> Shape:
    """Sustainable rates of each protocol in a bracket of 5 %; 10,000 records/s without."""

    def tables(experiment: Experiment) -> Tables:
        rates = {COORDINATED: 9900.0, ProtocolName.UNCOORDINATED: 9000.0, INDUCED: 6000.0}
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


def skews() -> Shape:
    """COOR worst in all."""
    slow = joined(steady(9.0), checkpointed(round_s=0.9, partition_s=0.9))
    fast = joined(steady(3.0), checkpointed(round_s=0.1, partition_s=0.1))
    return by_protocol(coordinated=slow, others=fast)


def on_cycle() -> Shape:
    """The cyclic query without a loss."""
    window = {"window_start_ns": 0, "window_end_ns": 1, "exact": 500, "emitted": 500}
    quality = {"quality": [window | {"lost": 0, "duplicated": 0, "wrong": 0}]}
    return lambda experiment: quality | checkpointed(invalid=2, count=40)(experiment) | restarted(2.0)(experiment)


def staggered() -> Shape:
    """A few invalid checkpoints wherever workers send to each other."""
    some, none = checkpointed(invalid=2, count=40), checkpointed(count=40)
    return lambda experiment: (none if query(experiment) == "q1" else some)(experiment)


SHAPES: dict[str, Shape] = {  # runs that show what each table or figure claims
    "checkmate/fig-07": sustaining(),
    "checkmate/table-2": overhead(),
    "checkmate/fig-08": checkpointed(),
    "checkmate/table-3": by_protocol(coordinated=checkpointed(), others=checkpointed(invalid=2, count=40)),
    "checkmate/fig-09": killed_at_18(),
    "checkmate/fig-10": killed_at_18(),
    "checkmate/fig-11": by_protocol(coordinated=restarted(5.0), others=restarted(7.0)),
    "checkmate/fig-12a": skews(),
    "checkmate/fig-12b": skews(),
    "checkmate/fig-13": restarted(6.0),
    "checkmate/table-4": on_cycle(),
    "checkmate/staggered": staggered(),
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


def invalid(share: float) -> pd.DataFrame:
    """Simulated counts with this share of invalid checkpoints, none of them coordinated."""
    table = simulated("invalid_share", {"COOR": 0.0, "UNC": share, "CIC": share})
    return table.assign(checkpoints=1000, invalid=1000 * table["invalid_share"])


RATES = {"none": 100.0, "COOR": 99.0, "UNC": 90.0, "CIC": 85.0}
TAKEN, OVERHEADS = {"COOR": 0.9, "UNC": 0.05, "CIC": 0.06}, {"COOR": 1.0, "UNC": 1.004, "CIC": 1.8}
RESTARTED = {"COOR": 0.01, "UNC": 0.2, "CIC": 0.1}
SIMULATED = {  # simulated rows that show it
    "checkmate/fig-07": relative_to_none(simulated("sustainable_rate", RATES, CIC=45.0)),
    "checkmate/table-2": simulated("message_overhead", OVERHEADS, CIC=2.6),
    "checkmate/fig-08": simulated("mean", TAKEN),
    "checkmate/table-3": invalid(0.03),
    "checkmate/fig-11": simulated("own_s", RESTARTED),
    "checkmate/staggered": invalid(0.03),
}
