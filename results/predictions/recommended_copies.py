"""What a run advises on active copies: which partitions to copy, and what tentative output is then worth.

The plan weighs partitions by what the run measured of their output. It is judged as `ppa` does: in the worst case, in
which every partition without a copy is down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from experiments import spec
from experiments.engines import REPLICATION_RATIO, EngineName, EngineSpec
from experiments.errors import BadInput
from experiments.misfits.engine import CHOOSING
from experiments.recovery_modes import RecoveryMode
from experiments.spec import Experiment
from models.accuracy import predicted_by_fidelity
from models.fidelity import score
from models.replication.planners import PLANNERS
from models.topology import Topology
from results.runs.store import Run
from results.summary.fallback import as_it_recovered
from results.summary.findings import table_or_empty, the_run

if TYPE_CHECKING:
    from testbed.core.dataflow.layout import Layout
    from testbed.recovery.partially_active import PartiallyActive

MODELS = {
    "copies": "ppa, definition 2: the plan of {planner} for {budget} copies under the output rates that were measured",
    "tentative_fidelity": "ppa, eqs. 1-4: output fidelity while every partition without a copy is down; it is the"
    " accuracy to expect {where}",
}
APPLIES, APPLIES_NOT = "of tentative results", "only of queries whose results come from one path: not of this one"


@dataclass(frozen=True)
class CopiesAdvice:
    """The partitions to copy.

    budget         how many may have a copy
    count          how many partitions there are
    options        with which the next run has these copies, as one text; None if nothing is to be copied
    fidelity       output fidelity while all others are down; `fidelity_now` with the copies that the run had
    is_accuracy    whether that is the accuracy to expect of tentative output
    """

    planner: str
    budget: int
    count: int
    partitions: tuple[str, ...]
    options: str | None
    copied_now: int
    fidelity: float
    fidelity_now: float
    is_accuracy: bool

    @property
    def models(self) -> dict[str, str]:
        """The model behind each field of the document."""
        known = {"planner": self.planner, "budget": self.budget, "where": APPLIES if self.is_accuracy else APPLIES_NOT}
        return {name: text.format(**known) for name, text in MODELS.items()}


def recommend_copies(run: Run, budget: int | None = None) -> CopiesAdvice:
    """Which partitions to copy if `budget` may have a copy; by default as many as in the run, or half if it had none.

    Raises `BadInput` for a run that is not one of an acyclic dataflow, one under whose protocol no
    partition can have a copy, and one in which no rates were measured.
    """
    experiment = as_it_recovered(spec.validate(run.experiment()), the_run(run))
    layout, topology = _weighed(run, experiment)
    engine, count = experiment.engine, len(topology.tasks)
    had = _copies_had(engine)
    if budget is None:
        budget = had.budget(layout) or round(REPLICATION_RATIO * count)
    elif not 0 <= budget <= count:
        raise BadInput("--budget", budget, f"0 to {count}, the partitions of the dataflow")
    planner = engine.replication_planner_run.value
    plan = PLANNERS[planner](topology, budget).replicated
    now = topology.mask(layout.partitions[number].name for number in had.copied(layout))
    partitions = tuple(topology.tasks[at] for at in np.flatnonzero(plan))
    return CopiesAdvice(
        planner,
        budget,
        count,
        partitions,
        " ".join(_options(experiment, layout, partitions)) if partitions else None,
        int(now.sum()),
        score(topology, ~plan).output_fidelity,
        score(topology, ~now).output_fidelity,
        predicted_by_fidelity(experiment.workload),
    )


def _weighed(run: Run, experiment: Experiment) -> tuple[Layout, Topology]:
    """The dataflow of a run, with the output rates that were measured."""
    from testbed.experiment_layout import layout_of  # here, since pages of runs of the other engine do without
    from testbed.topology import topology_of

    rates = table_or_empty(run, "partition_rates")
    if experiment.engine.name is not EngineName.DATAFLOW or rates.empty:
        allowed = "a run of engine dataflow in which all partitions ran undisturbed for some time"
        raise BadInput("run_id", run.run_id, allowed)
    _require_copies(experiment.engine)
    layout = layout_of(experiment)
    return layout, topology_of(layout, dict(zip(rates["partition"], rates["rate"].astype(float), strict=True)))


def _require_copies(engine: EngineSpec) -> None:
    """Raises `BadInput` unless partitions can have a copy under the protocol that the run had."""
    from testbed.protocols import by_name
    from testbed.recovery.partially_active import PartiallyActive

    protocol = engine.protocol_run.value
    if (why := PartiallyActive.check(by_name(protocol))) is not None:
        raise BadInput("engine.protocol", protocol, why)


def _copies_had(engine: EngineSpec) -> PartiallyActive:
    """What decided which partitions had a copy when the run began."""
    from testbed.recovery.partially_active import PartiallyActive

    return PartiallyActive(engine.replication_ratio_run, engine.replication_planner_run.value, named=engine.copied)


def _options(experiment: Experiment, layout: Layout, partitions: tuple[str, ...]) -> Iterator[str]:
    """What has to change in the experiment of the run, so that these partitions have a copy."""
    engine = experiment.engine
    roomy = _with_places(experiment, layout, partitions)
    if engine.recovery_run is not RecoveryMode.PARTIALLY_ACTIVE:
        yield f"--set engine.recovery={RecoveryMode.PARTIALLY_ACTIVE.value}"
    if roomy.cluster.workers != experiment.cluster.workers:
        yield f"--set cluster.workers={roomy.cluster.workers}"
    if roomy.engine.standby_run != engine.standby_run:
        yield f"--set engine.standby={roomy.engine.standby_run}"
    for name in CHOOSING:
        if getattr(engine, name) is not None:
            yield f"--set engine.{name}=null"
    yield f"--set 'engine.copied=[{', '.join(partitions)}]'"


def _with_places(experiment: Experiment, layout: Layout, partitions: tuple[str, ...]) -> Experiment:
    """The experiment with so many slots that stand by that each copy has a place: whole hosts of those that there are,
    or more hosts if the copies cannot keep out of the failure domains of their primaries otherwise."""
    from testbed.experiment_layout import slots_of
    from testbed.recovery.partially_active import without_a_place

    copied = frozenset(each.number for each in layout.partitions if each.name in partitions)
    standby, cores = experiment.engine.standby_run, experiment.cluster.worker_cores
    kept = [(0, standby), *((0, count) for count in range(cores, experiment.cores, cores) if count > standby)]
    added = [(hosts, standby + hosts * cores) for hosts in range(1, experiment.cluster.workers + 1)]
    for hosts, count in (*kept, *added):
        cluster = experiment.cluster.model_copy(update={"workers": experiment.cluster.workers + hosts})
        engine = experiment.engine.model_copy(update={"standby": count})
        changed = experiment.model_copy(update={"cluster": cluster, "engine": engine})
        if not without_a_place(layout, changed.cores - count, copied, slots_of(changed)):
            break
    return changed
