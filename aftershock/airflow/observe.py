"""The operator of the step `observe`: a trigger does the waiting, so that no worker is held.

All state is in the run's live directory: a triggerer or worker that dies only has to start watching again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from experiments.errors import AftershockError, EnvironmentFailure

if TYPE_CHECKING:
    from aftershock.run.progress import Progress

log = logging.getLogger(__name__)
MOST_FAILURES = 24  # looks in a row, two minutes; a run that cannot be read for longer counts as damaged


class Observe(BaseOperator):
    """Wait until the measurement window of a run has ended; fails with the run's error if it has one."""

    template_fields: Sequence[str] = ("experiment_run_id",)

    def __init__(self, *, experiment_run_id: str, poll_interval_s: float = 5.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.experiment_run_id, self.poll_interval_s = experiment_run_id, poll_interval_s

    def execute(self, context: Any) -> None:
        """Defer to the triggerer until the window has ended."""
        log.info("observing run %s", self.experiment_run_id)
        self.defer(trigger=RunEnds(self.experiment_run_id, self.poll_interval_s), method_name="resume")

    def resume(self, context: Any, event: dict[str, Any]) -> None:
        """The window has ended; raises `AirflowFailException` with the error of the run."""
        if event["error"]:
            raise AirflowFailException(event["error"])


class RunEnds(BaseTrigger):
    """Fires `{"error": str | None}` when the run has ended; asks every `poll_interval_s` [s] and at its end.

    Logs what is new.
    """

    def __init__(self, run_id: str, poll_interval_s: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # of Airflow, which gives it no types
        self.run_id, self.poll_interval_s = run_id, poll_interval_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class by its name, and the arguments with which the triggerer makes it again."""
        fields = {"run_id": self.run_id, "poll_interval_s": self.poll_interval_s}
        return f"{type(self).__module__}.{type(self).__qualname__}", fields

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Ask until the run has ended or is damaged, then yield one event.

        A look that fails for what may pass, such as too many open files of the triggerer, is repeated: the run goes on
        meanwhile. If the error went on to Airflow, it would start the whole task again, and only a few times.
        """
        shown, failures = None, 0
        while True:
            try:
                progress = await asyncio.to_thread(_progress, self.run_id)
            except _MayPass as failed:
                failures += 1
                if failures == MOST_FAILURES:
                    yield TriggerEvent({"error": str(failed.error)})
                    return
                log.warning("look %d of at most %d that fail in a row: %s", failures, MOST_FAILURES, failed.error)
                await asyncio.sleep(self.poll_interval_s)
                continue
            except AftershockError as error:
                yield TriggerEvent({"error": str(error)})
                return
            failures = 0
            if progress.line != shown:
                log.info(shown := progress.line)
            if progress.ended or progress.error:
                yield TriggerEvent({"error": progress.error})
                return
            await asyncio.sleep(min(self.poll_interval_s, progress.left_s))


class _MayPass(Exception):
    """The run is there, but cannot be looked at for the moment; `error` is what to tell if it stays so."""

    def __init__(self, error: AftershockError) -> None:
        super().__init__(str(error))
        self.error = error


def _progress(run_id: str) -> Progress:
    """Raises `_MayPass`, and `AftershockError` for a run that is torn down meanwhile, or damaged for good.

    A file that cannot be opened counts as damaged where documents are read, so that, too, may pass.
    """
    try:
        # here, since the DAG file must parse fast, and the triggerer's loop must not wait
        from aftershock.run import progress
        from aftershock.run.live_run import UNREADABLE
    except OSError as error:
        raise _MayPass(_unreadable(run_id, error)) from None

    try:
        return progress.progress(run_id)
    except (AftershockError, *UNREADABLE) as error:
        told = error if isinstance(error, AftershockError) else _unreadable(run_id, error)
        if isinstance(error, EnvironmentFailure | OSError) and not _is_gone(run_id):
            raise _MayPass(told) from None
        raise told from None


def _is_gone(run_id: str) -> bool:
    from results.runs import store

    try:
        (store.live(run_id).root / "status.json").stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _unreadable(run_id: str, error: Exception) -> EnvironmentFailure:
    cause = f"run {run_id} is gone, or damaged ({type(error).__name__}: {error})"
    return EnvironmentFailure(cause, "look whether it was ended by hand, and run again")
