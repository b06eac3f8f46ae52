"""The ids of the DAG runs of `benchmark` that tasks request. Only this module makes them, and takes them apart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

BENCHMARK = "benchmark"
_ID = re.compile(
    r"(?P<dag_id>[a-z]+)__(?P<dag_run>.+)__(?P<task_id>[a-z_.]+)__(?P<map_index>[0-9]+)__(?P<attempt>[0-9]+)"
    r"__(?P<label>[a-z0-9-]+)"
)


@dataclass(frozen=True)
class Request:
    """One try of a mapped task that requests a DAG run and waits for its end.

    Every try requests a DAG run of its own. So only a person clears such a DAG run, and no task does.

    attempt  the number of the try, from 1
    label    what is run: the experiment's name and its seed
    """

    dag_id: str
    dag_run: str
    task_id: str
    map_index: int
    attempt: int
    label: str

    @classmethod
    def by(cls, ti: Any, label: str) -> Request:
        """The request of the present try of a task instance."""
        return cls(ti.dag_id, ti.run_id, ti.task_id, ti.map_index, ti.try_number, label)

    @classmethod
    def of(cls, dag_run: str | None) -> Request | None:
        """The request that a DAG run came of; None for a DAG run that no task requested."""
        found = _ID.fullmatch(dag_run or "")
        if found is None:
            return None
        map_index, attempt = int(found["map_index"]), int(found["attempt"])
        return cls(found["dag_id"], found["dag_run"], found["task_id"], map_index, attempt, found["label"])

    @classmethod
    def behind(cls, dag_run: str | None, attempt: int | None) -> Request | None:
        """The request for which the run of a DAG run goes on: as long as the task that made it waits.

        None for a run that goes on for a person, who triggered the DAG run, or cleared it, so that this is a later
        `attempt` of its first step. No task ends such a run.
        """
        return cls.of(dag_run) if attempt == 1 else None

    @property
    def id(self) -> str:
        """The id of the DAG run that is requested."""
        return f"{self.dag_id}__{self.dag_run}__{self.task_id}__{self.map_index}__{self.attempt}__{self.label}"

    def is_by(self, ti: Any) -> bool:
        """Whether a task instance made the request, in its present try or an earlier one."""
        task = (self.dag_id, self.dag_run, self.task_id, self.map_index)
        return task == (ti.dag_id, ti.run_id, ti.task_id, ti.map_index)
