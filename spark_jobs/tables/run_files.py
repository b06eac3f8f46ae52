"""The files from which the tables of a run are built: experiment, fault plan, journals, input and output."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from chaos.fault_plan import PLAN_FILE, FaultPlan
from experiments.spec import Experiment
from experiments.workloads.base import INPUT
from journal.codec import EventT, Vocabulary
from journal.events.services import SCHEDULES, LoadScheduled
from journal.events.testbed import FALLBACKS, FellBack
from journal.reader import events
from results.runs.store import Run
from results.summary.fallback import with_recovery


@dataclass(frozen=True)
class RunFiles:
    """The folder of one run, whose `raw` holds what its services and jobs wrote."""

    spark: SparkSession
    result: Path

    @property
    def raw(self) -> Path:
        """The folder of raw logs."""
        return self.result / "raw"

    @property
    def run(self) -> Run:
        """The run that the logs are of, with its tables as far as they are written."""
        return Run(self.result.parent.name, self.result)

    @cached_property
    def fallbacks(self) -> list[FellBack]:
        """What the run did instead of what was asked: it recovered in another way, or a planner planned for another."""
        return self.journal("query", FALLBACKS)

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment as it ran, with the recovery and protocol that the run fell back to if it did.

        Raises pydantic's `ValidationError` if its file is damaged.
        """
        asked = Experiment.model_validate_json(self.run.experiment_path.read_text(encoding="utf-8"))
        for each in self.fallbacks:
            if each.recovery and each.protocol:
                return with_recovery(asked, each.recovery, each.protocol)
        return asked

    @cached_property
    def plan(self) -> FaultPlan:
        """The fault plan that the injector was given; raises as `FaultPlan.read` does."""
        return FaultPlan.read(self.raw / PLAN_FILE)

    @property
    def window(self) -> tuple[int, int]:
        """Start and end of the measurement window [UTC ns]."""
        return self.plan.window_start_ns, self.plan.window_end_ns

    def journal(self, name: str, vocabulary: Vocabulary[EventT]) -> list[EventT]:
        """The events of `NAME.jsonl` that the vocabulary has, in order; none if there is no such journal."""
        return list(events(self.raw / f"{name}.jsonl", vocabulary))

    @cached_property
    def schedule(self) -> LoadScheduled | None:
        """When input was due in the window: the last schedule of the generator; None if it never started."""
        return next(reversed(self.journal("generator", SCHEDULES)), None)

    def parquet(self, name: str) -> DataFrame:
        """The rows that the run left in `NAME.parquet`; raises as Spark does if there is no such file."""
        return self.spark.read.parquet(str(self.raw / f"{name}.parquet"))

    @property
    def input(self) -> DataFrame:
        """The committed input; logs of the first versions do not name its one topic."""
        found = self.parquet("input")
        return found if "topic" in found.columns else found.withColumn("topic", F.lit(INPUT))
