"""`checkmate`, table I: what the testbed's protocols are seen to do, compared with the printed table."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from reproductions.checkmate.by_protocol import CIC, COOR, UNC
from reproductions.checkmate.experiments import PROTOCOLS, SHORT
from reproductions.plants import put
from reproductions.reproduction import Progress, Reproduction, holds
from results.checks.rules import in_set
from results.views.style import BLUE, INK, new_figure

PRINTED = {  # a mark for each feature, in the order of the paper
    COOR: "x----x--",
    UNC: "-xx-x-x-",
    CIC: "-xxxx-xx",
}


def features_of_protocols(size: int, tell: Progress) -> pd.DataFrame:
    """One row for each protocol and feature: whether the code has it, and whether the paper says so."""
    from testbed.protocols import by_name
    from testbed.protocols.features import features

    rows = []
    for protocol in PROTOCOLS:
        found = features(by_name(protocol.value))
        for (feature, has), mark in zip(found.items(), PRINTED[SHORT[protocol]], strict=True):
            about = {"protocol": SHORT[protocol], "feature": feature, "has": has}
            rows.append(about | {"printed": mark == "x", "agrees": has == (mark == "x")})
    return pd.DataFrame(rows)


def _plot(table: pd.DataFrame) -> Figure:
    """The table as the paper has it; a mark that the paper does not have, or has alone, is written out."""
    figure, axes = new_figure(2.6)
    protocols, columns = list(PRINTED), list(dict.fromkeys(table["feature"]))
    for row in table.itertuples():
        told = ("✓" if row.has else "-") if row.agrees else f"{'has' if row.has else 'lacks'}; not printed so"
        place = columns.index(row.feature), -protocols.index(row.protocol)
        axes.text(*place, told, ha="center", va="center", color=BLUE if row.has else INK, fontsize=13)
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(0.5 - len(protocols), 0.5), title="features of the protocols")
    axes.set_xticks(range(len(columns)), [name.replace(" ", "\n", 1) for name in columns])
    axes.set_yticks([-place for place in range(len(protocols))], protocols)
    axes.grid(visible=False)
    return figure


REPRODUCTIONS = (
    Reproduction(
        "checkmate/table-1",
        "features of the checkpointing protocols, from their code",
        compute=features_of_protocols,
        plot=_plot,
        checks=(
            holds(
                "features.as_printed",
                lambda table: table.assign(agrees=table["agrees"].astype("boolean")),
                [in_set("agrees", True)],
                lambda table: f"{int(table['agrees'].sum())} of {len(table)} as printed",
                f"all {sum(map(len, PRINTED.values()))} marks of table I",
                put(
                    "CIC's hook before a message is processed, empty",
                    "testbed.protocols.communication_induced:CommunicationInduced.on_message",
                    lambda self, frame: None,
                ),
            ),
        ),
    ),
)
