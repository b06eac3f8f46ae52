"""`checkmate`, table IV: the cyclic query under a kill, with each protocol that can run it."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from matplotlib.figure import Figure

from experiments.engines import BY_OWN_CLOCK, ProtocolName
from experiments.errors import BadInput
from reproductions.checkmate.by_protocol import CIC, COOR, LOOKS, UNC, complete, facts
from reproductions.checkmate.checkpoints import checkpoint_times, few_invalid, taken_checkpoints, validity
from reproductions.checkmate.experiments import CYCLE, SHORT, WORKERS, cyclic, on_cycle
from reproductions.checkmate.recoveries import recovery_times
from reproductions.measured import Cell
from reproductions.measured_rows import Row, measured
from reproductions.plants import put_in_rows
from reproductions.reproduction import ReproductionCheck, holds
from results.checks.rules import NotEnough, in_set
from results.views.style import WIDTH_IN

PRINTED = {  # checkpoint time [ms], restart [ms], invalid [%], on 5 and on 10 workers
    UNC: (0.01, 620, 1.4, 1.38, 344, 1.4),
    CIC: (2.73, 347, 1.7, 8.39, 399, 1.6),
}
PRINTED_COLUMNS = tuple(
    f"printed_{name}_on_{workers}" for workers in (5, 10) for name in ("checkpoint_ms", "restart_ms", "invalid_percent")
)
QUANTITIES = {"checkpoint_ms": "checkpoint time [ms]", "restart_ms": "restart [ms]", "invalid_percent": "invalid [%]"}


def on_the_cycle(cell: Cell) -> Iterator[Row]:
    """What a run lost, doubled and got wrong; checkpoint time, restart without Spark's [ms], and share of invalid."""
    quality, restarts, taken = cell.table("quality"), list(recovery_times(cell)), taken_checkpoints(cell)
    if not (len(quality) and restarts and len(taken)):
        return
    (times,) = checkpoint_times(cell)
    counts = {name: int(quality[name].sum()) for name in ("exact", "lost", "duplicated", "wrong")}
    measured_ = {
        "checkpoint_ms": 1000 * times["mean"],
        "restart_ms": 1000 * restarts[0]["own_s"],
    }
    valid = validity(taken)
    measured_ |= {"invalid_percent": 100 * valid["invalid_share"]}
    measured_ |= {name: valid[name] for name in ("checkpoints", "invalid", "in_outages", "invalid_in_outages")}
    yield counts | measured_ | dict(zip(PRINTED_COLUMNS, PRINTED[facts(cell)["protocol"]], strict=True))


def with_refusal(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a row for COOR: what it is refused with."""
    about = {"query": CYCLE.value, "protocol": COOR, "workers": WORKERS, "replicate": 0, "simulated": False}
    return pd.concat([table, pd.DataFrame([about | {"refusal": refusal(ProtocolName.COORDINATED)}])], ignore_index=True)


def refusal(protocol: ProtocolName) -> str | None:
    """The line with which the cyclic query is refused under a protocol; None if it is not."""
    try:
        on_cycle(protocol)
    except BadInput as error:
        return str(error)
    return None


def _exact(protocol: str) -> ReproductionCheck:
    def found(table: pd.DataFrame) -> pd.DataFrame:
        rows = complete(table[table["protocol"] == protocol], "exact", "lost", "duplicated", "wrong")
        if not (rows["exact"] > 0).all():
            raise NotEnough("there was no result to compare with")
        return rows

    names = ("lost", "duplicated", "wrong")
    return holds(
        f"{protocol.lower()}.recovers_exactly",
        found,
        [in_set(name, 0) for name in names],
        lambda rows: ", ".join(f"{rows[name].sum():.0f} {name}" for name in names) + f" of {rows['exact'].sum():.0f}",
        f"{protocol}: the changes of every path add up to one after a kill",
        put_in_rows("lost", 1, protocol=protocol),
    )


def _few_invalid() -> ReproductionCheck:
    def counted(table: pd.DataFrame) -> pd.DataFrame:
        return complete(table[table["protocol"].isin((UNC, CIC))], "checkpoints", "invalid")

    expected = "UNC and CIC: at most 5 %, no domino effect (printed: 1.4 to 1.7 %)"
    return few_invalid("invalid.few", counted, expected)


def _refused() -> ReproductionCheck:
    def found(table: pd.DataFrame) -> pd.DataFrame:
        rows = table[table["protocol"] == COOR]
        return rows.assign(refused=[str(text).startswith("engine.protocol: ") for text in rows["refusal"]])

    return holds(
        "coordinated.refused",
        found,
        [in_set("refused", True)],
        lambda rows: str(rows["refusal"].iat[0]),
        "COOR is refused in one line that names field and value",
        put_in_rows("refusal", "refused, somehow", protocol=COOR),
    )


def _plot(table: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(WIDTH_IN, 3.8), layout="constrained")
    names = [SHORT[protocol] for protocol in BY_OWN_CLOCK]
    rows = table[table["protocol"].isin(names)]
    for axes, (column, title) in zip(figure.subplots(1, len(QUANTITIES)), QUANTITIES.items(), strict=True):
        for place, name in enumerate(names):
            found = rows.loc[rows["protocol"] == name, column].dropna()
            axes.plot([place] * len(found), found, ls="none", ms=8, **LOOKS[name])
        axes.set_xticks(range(len(names)), names)
        axes.set(title=title, xlim=(-0.5, len(names) - 0.5), ylim=(0, None))
    return figure


REPRODUCTIONS = (
    measured(
        "checkmate/table-4",
        "the cyclic reachability query under a kill; coordinated checkpoints are refused",
        needs=cyclic,
        of_cell=on_the_cycle,
        finish=with_refusal,
        plot=_plot,
        about=facts,
        checks=(_exact(UNC), _exact(CIC), _few_invalid(), _refused()),
    ),
)
