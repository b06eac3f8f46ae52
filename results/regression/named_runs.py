"""The result of comparing runs that the caller names: side by side, or judged against a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from results.predictions.pooled import Pooled
from results.regression.change import Change
from results.regression.history import HistoryRow
from results.regression.judging import Judgement, overall

SHOWN = ("run_id", "experiment", "machine", "metrics")


@dataclass(frozen=True)
class RunsSideBySide:
    """Two runs or more.

    failed   by run id: the checks that a run failed
    missing  by run id: why the run did not measure a metric that another one of them measured
    fields   by dotted path: the value of each run, where their experiments differ, except in the seed
    differ   what they do not have in common, which may be why their figures differ: "experiment", "machine", "seeds"
    pooled   what they measured together, held against eq. 10; None unless they are known to be of one experiment, and
             all are this installation's own
    """

    runs: list[HistoryRow]
    failed: Mapping[str, list[str]]
    missing: Mapping[str, Mapping[str, str]]
    fields: Mapping[str, list[Any]]
    differ: list[str]
    pooled: Pooled | None

    def to_json(self) -> dict[str, Any]:
        """`{runs: [{run_id, experiment, machine, metrics, published, failed_checks, not_measured}], differ, fields,
        pooled}`, as `--json` has it."""
        pooled = None if self.pooled is None else self.pooled.row()
        runs = [self._run(run) for run in self.runs]
        return {"runs": runs, "differ": self.differ, "fields": dict(self.fields), "pooled": pooled}

    def _run(self, run: HistoryRow) -> dict[str, Any]:
        found = {"failed_checks": self.failed[run.run_id], "not_measured": dict(self.missing[run.run_id])}
        return {name: getattr(run, name) for name in SHOWN} | {"published": run.is_published} | found


@dataclass(frozen=True)
class JudgedRuns:
    """Runs and their baseline, metric by metric.

    count   of the runs; those of the baseline follow them in `fields`
    fields  and `differ`: as of runs side by side
    """

    judgements: list[Judgement]
    count: int
    fields: Mapping[str, list[Any]]
    differ: list[str]

    @property
    def verdict(self) -> Change:
        """The verdict on all metrics together."""
        return overall([one.verdict for one in self.judgements])

    def to_json(self) -> dict[str, Any]:
        """`{verdict, metrics: rows of the table regression, differ, fields}`, as `--json` has it."""
        metrics = [one.row() for one in self.judgements]
        found = {"differ": self.differ, "fields": dict(self.fields)}
        return {"verdict": self.verdict.value, "metrics": metrics, **found}
