"""Shows the progress of a run on a terminal: log lines, and below them the step, what it waits for, and the time left.

What is no terminal, such as a file, gets a line of it whenever a step begins, and again for every half minute of it.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from aftershock.run.live_run import UNREADABLE, LiveRun
from aftershock.run.step_progress import RunProgress, run_progress
from experiments.errors import AftershockError

AIRFLOW_STARTS_S = 30.0
LOOK_S, LINE_EVERY_S = 1.0, 30.0
BAR_WIDTH = 30


class TerminalProgress:
    """A context in which the progress of a run is shown on standard error."""

    def __init__(self, run_id: str) -> None:
        self._run = LiveRun(run_id)
        self._began_s = self._looked_s = time.monotonic()
        self._told_s, self._told = -LINE_EVERY_S, ""
        self._has_begun = False
        console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> TerminalProgress:
        if self._live:
            self._live.start()
        self._show(self._progress())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            with suppress(OSError):  # a closed terminal must not replace what ended the context
                self._live.stop()

    def line(self, text: str) -> None:
        """Print a line, above what is shown of the progress."""
        if self._live:
            self._live.console.print(text, soft_wrap=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def look(self) -> None:
        """Show where the run is, if the last look is a while ago."""
        now_s = time.monotonic()
        if now_s - self._looked_s >= LOOK_S:
            self._looked_s = now_s
            self._show(self._progress())

    def _progress(self) -> RunProgress | None:
        """None before the run has begun, when it is over, and of a damaged one: the display ends no run."""
        try:
            progress = run_progress(self._run) if self._run.began else None
        except (AftershockError, *UNREADABLE):
            return None
        return progress if progress and progress.steps[0].took_s is not None else None

    def _show(self, progress: RunProgress | None) -> None:
        if self._has_begun and progress is None:
            return  # the run is over, and only Airflow has yet to say so
        self._has_begun = progress is not None
        since_s = time.monotonic() - self._began_s
        title, waiting = (described(progress), awaited(progress)) if progress else (starting(since_s), None)
        if self._live:
            self._live.update(_picture(progress, title, waiting), refresh=True)
            return
        step = progress.current.name if progress else ""
        if step != self._told or time.monotonic() - self._told_s >= LINE_EVERY_S:
            self._told, self._told_s = step, time.monotonic()
            self.line("; ".join(filter(None, [title, waiting])))


def starting(since_s: float) -> str:
    """What is said while the run has not begun."""
    return f"Airflow starts: {since_s:.0f} s of about {AIRFLOW_STARTS_S:.0f} s"


def described(progress: RunProgress) -> str:
    """The current step, how long it has been going on, and what is left of the run."""
    step = progress.current
    clock = f"{step.took_s or 0.0:.0f} s of about {step.usual_s:.0f} s"
    count = f"step {progress.number} of {len(progress.steps)}"
    return f"{count}, {step.name}: {step.does} ({clock}); {progress.left} left"


def awaited(progress: RunProgress) -> str | None:
    """What the step waits for, or that it takes longer than usual."""
    late = "longer than usual" if progress.is_late else None
    waits = f"waiting for {progress.awaited} ({progress.awaited_s:.0f} s)" if progress.awaited else None
    return ", ".join(filter(None, [waits, late])) or None


def _picture(progress: RunProgress | None, title: str, waiting: str | None) -> Table:
    """A bar of the whole run, by time, with the words beside and below it."""
    spent_s = sum(step.took_s or 0.0 for step in progress.steps) if progress else 0.0
    left_s = progress.left_s if progress else AIRFLOW_STARTS_S
    table = Table.grid(padding=(0, 1))
    table.add_row(ProgressBar(total=spent_s + left_s, completed=spent_s, width=BAR_WIDTH), Text(title))
    table.add_row("", Text(waiting or "", style="dim"))
    return table
