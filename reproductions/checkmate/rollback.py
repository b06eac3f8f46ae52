"""`checkmate`, figures 4 and 5: rollback propagation, step by step, on two recorded executions.

Both figures are lost. Figure 5 is rebuilt from the text of section III-B, which says of each line which message makes
it invalid; figure 4 is an execution of our own in the spirit of its caption, with a line derived by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from models.checkpoint_graph import Execution, in_flight, invalid, orphans, record, recovery_line, rollback_steps
from reproductions.plants import InCode
from reproductions.reproduction import Reproduction, ReproductionCheck, holds
from results.checks.rules import in_set, pairs_equal
from results.views.style import BLUE, GREEN, GREY, INK, PAPER, RED, WIDTH_IN

INVALID_LINE: dict[str, Any] = {"color": GREY, "lw": 1.8, "ls": "--"}
RECOVERY_LINE: dict[str, Any] = {"color": GREEN, "lw": 2.5}
KEY = (
    Line2D([], [], color=BLUE, marker=">", lw=1.4, label="message"),
    Line2D([], [], color=RED, marker=">", lw=1.4, label="orphan: sent after the line, received before it"),
    Line2D([], [], color=INK, marker="s", ms=10, ls="none", label="checkpoint x of its operator (0: initial state)"),
    Line2D([], [], label="line that the orphan makes invalid", **INVALID_LINE),
    Line2D([], [], label="recovery line", **RECOVERY_LINE),
)


class Message(NamedTuple):
    """A message between operators, which are numbered from 1 as the paper does."""

    sender: int
    sent_at: float
    receiver: int
    received_at: float


class Timeline(NamedTuple):
    """An execution with its times, for drawing; `expected` has (line, orphan messages) for the steps that are known.

    Checkpoints are numbered from 1 in `checkpoints`: number 0 of every operator is its initial state.
    """

    checkpoints: dict[int, list[float]]
    messages: dict[str, Message]
    expected: dict[int, tuple[tuple[int, ...], str]]

    def execution(self) -> Execution:
        """The execution without its times, with operators numbered from 0."""
        owners = [(operator - 1, at) for operator, times in self.checkpoints.items() for at in times]
        sent = [(m.sender - 1, m.sent_at) for m in self.messages.values()]
        received = [(m.receiver - 1, m.received_at) for m in self.messages.values()]
        events = (([who for who, _ in pairs], [at for _, at in pairs]) for pairs in (owners, sent, received))
        return record(len(self.checkpoints), *events)


# By hand: a is sent after C<1,2> and received before C<2,2>, which therefore falls; so does C<3,2>, as b is sent after
# C<2,1> and received before it. No message crosses the line (2, 1, 1) backwards; d and f cross it forwards.
PIPELINE = Timeline(
    checkpoints={1: [2.0, 6.0], 2: [3.0, 7.4], 3: [4.0, 9.0]},
    messages={
        "c": Message(1, 1.0, 2, 1.6), "e": Message(2, 1.9, 3, 2.6), "f": Message(2, 2.6, 3, 4.6),
        "d": Message(1, 2.5, 2, 3.6), "b": Message(2, 5.0, 3, 5.8), "a": Message(1, 6.5, 2, 7.0),
    },
    expected={0: ((2, 2, 2), "a"), 1: ((2, 1, 2), "b"), 2: ((2, 1, 1), "")},
)  # fmt: skip

# A cycle O1 > O2 > O3 > O1. The text names the lines that m6, m4 and m5 make invalid, and the last line; six messages
# for five rollbacks means that one is not needed: m1 rules out C<3,2> beside C<2,1>, as m5 has done before.
CYCLE = Timeline(
    checkpoints={1: [1.1, 3.1, 4.6], 2: [1.2, 3.0, 4.7], 3: [1.0, 4.0]},
    messages={
        "m1": Message(2, 2.0, 3, 2.25), "m2": Message(1, 2.2, 2, 2.5), "m3": Message(3, 2.55, 1, 2.8),
        "m4": Message(1, 3.35, 2, 3.5), "m5": Message(2, 3.7, 3, 3.85), "m6": Message(3, 4.25, 1, 4.45),
    },
    expected={
        0: ((3, 3, 2), "m6"), 1: ((2, 3, 2), "m4"), 2: ((2, 2, 2), "m5"), 5: ((1, 1, 1), ""),
    },
)  # fmt: skip


def steps_of(timeline: Timeline) -> pd.DataFrame:
    """One row for each operator at each step of algorithm 1, beside what is expected of the step.

    The last step says of each operator how many checkpoints it has taken, and how many of them are invalid.
    """
    execution = timeline.execution()
    names = np.array(list(timeline.messages))
    rows = []
    for step, line in enumerate(rollback_steps(execution)):
        known_line, known_orphans = timeline.expected.get(step, (None, None))
        facts = {"step": step, "orphan_messages": " ".join(names[orphans(execution, line)])}
        facts |= {"expected_orphan_messages": known_orphans, "in_flight": " ".join(names[in_flight(execution, line)])}
        for operator, number in enumerate(line):
            known = None if known_line is None else known_line[operator]
            rows.append(facts | {"operator": f"O{operator + 1}", "checkpoint": number, "expected_checkpoint": known})
    table = pd.DataFrame(rows)
    last = table["step"] == table["step"].max()
    table.loc[last, "checkpoints_taken"] = execution.taken
    table.loc[last, "invalid_checkpoints"] = np.add.reduceat(invalid(execution), execution.first, dtype=int)
    whole = ("checkpoint", "expected_checkpoint", "checkpoints_taken", "invalid_checkpoints")
    return table.astype(dict.fromkeys(whole, "Int64"))


def plot_of(timeline: Timeline) -> Callable[[pd.DataFrame], Figure]:
    """The plot of a table of `steps_of`: a panel for each step, with its line and the orphan that rules it out."""

    def plot(table: pd.DataFrame) -> Figure:
        steps = table["step"].nunique()
        columns = 1 if steps <= 3 else 2
        rows = -(-steps // columns)
        figure = Figure(figsize=(WIDTH_IN, 0.9 + 1.9 * rows), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False)
        for axes in panels.flat[steps:]:
            axes.set_axis_off()
        for axes, (step, line) in zip(panels.flat, table.groupby("step"), strict=False):
            _draw_step(axes, timeline, line, last=step == table["step"].max())
        for axes in panels[-1]:
            axes.set_xlabel("time")
        figure.legend(handles=KEY, loc="outside upper center", ncols=3)
        return figure

    return plot


def _draw_step(axes: Axes, timeline: Timeline, rows: pd.DataFrame, last: bool) -> None:
    """The execution with the line of one step, and the messages that are orphans of it."""
    orphan_messages = rows["orphan_messages"].iat[0].split()
    times = {operator: [0, *at] for operator, at in timeline.checkpoints.items()}
    for operator, at in times.items():
        axes.axhline(-operator, color=GREY, lw=1, zorder=1)
        axes.plot(at, [-operator] * len(at), "s", color=INK, ms=12, zorder=3)
        for number, x in enumerate(at):
            axes.annotate(f"{number}", (x, -operator), color=PAPER, ha="center", va="center_baseline", fontsize=9)
    line = [times[operator][number] for operator, number in zip(times, rows["checkpoint"], strict=True)]
    axes.plot(line, [-operator for operator in times], zorder=2, **(RECOVERY_LINE if last else INVALID_LINE))
    for name, message in timeline.messages.items():
        _draw_message(axes, name, message, RED if name in orphan_messages else BLUE)
    found = f"{' and '.join(orphan_messages)} orphaned" if orphan_messages else "no orphan: the recovery line"
    axes.set_title(f"step {rows['step'].iat[0]}: {found}")
    axes.set_yticks([-operator for operator in times], [f"O{operator}" for operator in times])
    axes.set(xticks=[], xlim=(-0.3, None), ylim=(-len(times) - 0.5, -0.5))
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)


def _draw_message(axes: Axes, name: str, message: Message, colour: str) -> None:
    ends = (message.sent_at, -message.sender), (message.received_at, -message.receiver)
    axes.annotate("", ends[1], ends[0], arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.4})
    behind = (0, 11 if message.sender < message.receiver else -11)  # points; where no line passes
    axes.annotate(name, ends[0], behind, textcoords="offset points", color=colour, ha="center", va="center", fontsize=9)


STOPS_EARLY = InCode(
    "algorithm 1 stops a step early", "models.checkpoint_graph:rollback_steps", lambda sound: lambda e: sound(e)[:-1]
)
GOES_ON = InCode(
    "algorithm 1 ends at the initial states",
    "models.checkpoint_graph:rollback_steps",
    lambda sound: lambda execution: [*sound(execution)[:-1], 0 * execution.taken],
)
SEARCH_GOES_ON = InCode(
    "the search ends at the initial states",
    "models.checkpoint_graph:recovery_line",
    lambda sound: lambda execution: 0 * execution.taken,
)
DELAYED = InCode(
    "orphans of the initial states instead of the line",
    "models.checkpoint_graph:orphans",
    lambda sound: lambda execution, line: sound(execution, 0 * execution.taken),
)


def _checks(timeline: Timeline, line: str) -> tuple[ReproductionCheck, ...]:
    return (
        holds(
            "lines.as_expected",
            lambda table: _known_steps(timeline, table),
            [pairs_equal("line", "expected_line")],
            lambda frame: "; ".join(frame["line"]),
            f"{len(timeline.expected)} lines {line}",
            STOPS_EARLY,
        ),
        holds(
            "orphans.as_expected",
            lambda table: _known_steps(timeline, table),
            [pairs_equal("orphan_messages", "expected_orphan_messages")],
            lambda frame: ", ".join(frame["orphan_messages"].replace("", "none")),
            f"the orphan messages of those lines {line}",
            DELAYED,
        ),
        holds(
            "line.is_the_latest_consistent",
            lambda table: _against_all_lines(timeline, table),
            [in_set("orphan_messages", 0), pairs_equal("checkpoint", "latest_checkpoint")],
            lambda frame: f"{frame['orphan_messages'].iat[0]} orphans, {frame['lines'].iat[0]} lines compared",
            "no orphan, and no consistent line beyond it",
            GOES_ON,
        ),
        holds(
            "line.is_found_at_once",
            lambda table: _last(table).assign(searched=recovery_line(timeline.execution())).astype({"checkpoint": int}),
            [pairs_equal("checkpoint", "searched")],
            lambda frame: _text(frame["checkpoint"]),
            "the search of the graph of intervals ends at the same line as algorithm 1",
            SEARCH_GOES_ON,
        ),
    )  # fmt: skip


def _known_steps(timeline: Timeline, table: pd.DataFrame) -> pd.DataFrame:
    """Every step of which something is known, beside what the table has for it: nothing, where it has no such step."""
    rows = []
    for step, (line, orphan_messages) in timeline.expected.items():
        found = table[table["step"] == step]
        expected = {"expected_line": _text(line), "expected_orphan_messages": orphan_messages}
        messages = " and ".join(found["orphan_messages"].unique()) if len(found) else "no such step"
        rows.append({"line": _text(found["checkpoint"]), "orphan_messages": messages} | expected)
    return pd.DataFrame(rows)


def _against_all_lines(timeline: Timeline, table: pd.DataFrame) -> pd.DataFrame:
    """The last line of the table beside the latest of all consistent lines, found by trying every line."""
    execution = timeline.execution()
    every = [np.array(line) for line in product(*(range(count + 1) for count in execution.taken))]
    latest = np.max([line for line in every if not orphans(execution, line).any()], axis=0)
    found = _last(table)["checkpoint"].to_numpy(dtype=int)
    facts = {"checkpoint": found, "latest_checkpoint": latest, "lines": len(every)}
    return pd.DataFrame(facts | {"orphan_messages": orphans(execution, found).sum()})


def _last(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["step"] == table["step"].max()]


def _text(line: Iterable[int]) -> str:
    return " ".join(f"C<{operator},{number}>" for operator, number in enumerate(line, start=1))


REPRODUCTIONS = (
    Reproduction(
        "checkmate/fig-04",
        "rollback propagation on a pipeline",
        compute=lambda size, tell: steps_of(PIPELINE),
        plot=plot_of(PIPELINE),
        checks=_checks(PIPELINE, "derived by hand"),
    ),
    Reproduction(
        "checkmate/fig-05",
        "the domino effect on a cycle",
        compute=lambda size, tell: steps_of(CYCLE),
        plot=plot_of(CYCLE),
        checks=_checks(CYCLE, "of the text"),
    ),
)
