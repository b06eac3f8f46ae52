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
        """Ask until the run has ended or is damaged, then yield one event."""
        shown = None
        while True:
            try:
                progress = await asyncio.to_thread(_progress, self.run_id)
            except AftershockError as error:
                yield TriggerEvent({"error": str(error)})
                return
            if progress.line != shown:
                log.info(shown := progress.line)
            if progress.ended or progress.error:
                yield TriggerEvent({"error": progress.error})
                return
            await asyncio.sleep(min(self.poll_interval_s, progress.left_s))


def _progress(run_id: str) -> Progress:
    """Raises `AftershockError` also for a run that is torn down meanwhile, or damaged."""
    # here, since the DAG file must parse fast, and the triggerer's loop must not wait
    from aftershock.run import progress
    from aftershock.run.live_run import UNREADABLE

    try:
        return progress.progress(run_id)
    except UNREADABLE as error:
        cause = f"run {run_id} is gone, or damaged ({type(error).__name__}: {error})"
        raise EnvironmentFailure(cause, "look whether it was ended by hand, and run again") from None
