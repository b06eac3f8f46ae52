"""The fallback of a job whose dataflow cannot be recovered in parts.

Source: `incremental`, section 4.3. Receivers recognize by its number what is sent again. That is sound only if every
operator is deterministic. If one is not, all partitions roll back to the last complete checkpoint, and output is
published only once no recovery can undo it.
"""

from __future__ import annotations

from dataclasses import replace

from testbed.core.dataflow.layout import Layout, PartitionLayout
from testbed.operators import Operator, Source
from testbed.protocols.coordinated import Coordinated
from testbed.recovery import Global
from testbed.runtime.job import Job


def settled(job: Job) -> tuple[Job, str | None]:
    """The job as it can be run, and in one line what was changed and why; None if nothing was.

    Raises `BadInput` if the job cannot be run as changed.
    """
    by_chance = not_deterministic(job.layout())
    if not by_chance or not job.protocol_class.by_batch:
        return job, None
    changed = replace(job, protocol=Coordinated.name, recovery=Global.name, tentative=False)
    instead = f"recovery {changed.recovery} with protocol {changed.protocol}"
    asked = f"recovery {job.recovery} with protocol {job.protocol}"
    return changed, f"{instead} instead of {asked}: operator {by_chance[0]} is not deterministic"


def not_deterministic(layout: Layout) -> list[str]:
    """The operators that may make something else of the same input, by name, each once."""
    found = (each.operator for each in layout.partitions if not _is_deterministic(each))
    return list(dict.fromkeys(found))


def _is_deterministic(partition: PartitionLayout) -> bool:
    element = partition.element
    operators = element.then if isinstance(element, Source) else (element,)
    return all(each.deterministic for each in operators if isinstance(each, Operator))
