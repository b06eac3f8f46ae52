"""Which runs can be compared: those that differ only in their protection and their faults."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pandas as pd

from experiments import spec
from experiments.engines import EngineSpec
from experiments.errors import AftershockError
from experiments.faults import FaultAction, FaultProcess, FaultScope, FaultSpec
from experiments.loads import LoadMode
from experiments.spec import Experiment
from experiments.wording import significant
from experiments.workloads.catalogue import OwnJobSpec
from results.damage import Damaged
from results.runs import store
from results.runs.state import RunState
from results.runs.store import Run
from results.summary.fallback import as_it_recovered
from results.summary.findings import engine_and_mode
from results.summary.index import IndexRow

KEY_DIGITS = 12
MOST_KNOWN = 5000  # experiments that are kept in memory
EngineFields = tuple[tuple[str, Any], ...]
HOW_OFTEN = {"rate", "law", "shape", "at", "cause"}  # a fault strikes; all else says what it does


@dataclass(frozen=True)
class Setting:
    """A workload on a cluster under a load, of one class of machine; `key` tells it from every other."""

    workload: str
    cluster: str
    load: str
    machine: str
    key: str


@dataclass(frozen=True)
class Described:
    """A finished run by what was asked of it.

    engine   the fields of the engine, all of them: what differs in any is another protection
    label    what protects it, in words
    failures what strikes it, apart from how often; None without faults
    """

    row: IndexRow
    setting: Setting
    load: LoadMode
    in_parts: bool
    engine: EngineFields
    label: str
    failures: str | None


def described(row: IndexRow) -> Described | None:
    """None for a run of which it is not known what or where it ran, or which is not read yet: it is of no setting."""
    if row.machine is None or row.state == RunState.UNREAD:
        return None
    run = store.stored(row.run_id)
    try:
        experiment = _experiment(run, run.experiment_path.stat().st_mtime_ns)
    except (AftershockError, Damaged, OSError):
        return None
    experiment = as_it_recovered(experiment, row.facts)
    engine = experiment.engine.filled_in
    fields = tuple(sorted(engine.model_dump().items()))
    of = experiment.load.mode, engine.recovers_in_parts, fields, _label(row, experiment), _failures(experiment)
    return Described(row, _setting(row.machine, experiment), *of)


@lru_cache(MOST_KNOWN)
def _experiment(run: Run, written_ns: int) -> Experiment:
    """Runs do not change, unless they are replaced; to validate a thousand experiments takes a page too long."""
    return spec.validate(run.experiment())


def _setting(machine: str, experiment: Experiment) -> Setting:
    load, cluster, workload = experiment.load, experiment.cluster, experiment.workload
    named = workload.model_dump(mode="json")
    texts = {
        LoadMode.SATURATING: "saturating",
        LoadMode.RATE: f"{significant(load.rate)} records/s",
        LoadMode.SUSTAINABLE: f"{load.share:g} of the sustainable rate",
    }
    parts = [named, cluster.model_dump(mode="json"), load.model_dump(mode="json", include=set(load.used)), machine]
    words = [named["name"], named.get("query"), f"depth {named['depth']}" if "depth" in named else None]
    words += [workload.program_words] if isinstance(workload, OwnJobSpec) else []
    batches = f", batches of {load.batch_records:,}" if load.batch_records else ""
    hosts = f"{cluster.workers} workers ({cluster.driver})"
    return Setting(" ".join(filter(None, words)), hosts, texts[load.mode] + batches, machine, _digest(parts))


def _label(row: IndexRow, experiment: Experiment) -> str:
    """What executed it and how it comes back; of a run without tables, what was asked."""
    engine = experiment.engine
    words = engine_and_mode(pd.Series(row.facts or _asked(engine)))
    return f"{words}, T = {engine.checkpoint_interval_s:g} s" if engine.takes_checkpoints else words


def _asked(engine: EngineSpec) -> dict[str, str | None]:
    """What a row of the runs table would say of the engine."""
    protocol = None if engine.works_in_batches else engine.protocol_run.value
    named = {"engine": engine.name.value, "trigger": engine.trigger.value, "recovery": engine.recovery_run.value}
    return {**named, "protocol": protocol}


def _failures(experiment: Experiment) -> str | None:
    """Two runs whose failures are told alike are struck alike, at rates that may differ."""
    faults = experiment.fault_spec
    told = {_words(faults, each, _scope(faults, each), {"scope"}) for each in faults.processes}
    told |= {_words(faults, each, _hosts(len(each.targets)), {"targets"}) for each in faults.events}
    told |= {_words(faults, each, f"a burst of {_hosts(each.hosts)}", {"hosts"}) for each in faults.bursts}
    at_most = f", at most {_hosts(faults.max_down)} down" if faults.max_down else ""
    return ", ".join(sorted(told)) + at_most if told else None


def _scope(faults: FaultSpec, process: FaultProcess) -> str:
    """What a strike takes: a domain by how many hosts it has, since the same name may be of more elsewhere."""
    if process.scope is not FaultScope.DOMAIN:
        return process.scope.value
    sizes = sorted({len(hosts) for hosts in faults.taken(process).values()})
    return f"domain of {' or '.join(map(str, sizes))}"


def _hosts(count: int) -> str:
    return "host" if count == 1 else f"{count} hosts"


def _words(faults: FaultSpec, fault: FaultAction, struck: str, told: set[str]) -> str:
    """Such as "kill of host, healed after 2 s"; what else it says, and need not, follows."""
    said = fault.model_dump(mode="json", exclude_defaults=True, exclude=HOW_OFTEN | told | {"kind"})
    healed = said.pop("heal_after", None)
    text = f"{fault.kind.value} of {struck}"
    if healed is None and fault.kind.loses_the_host and faults.time_scale != 1:
        text += f", healed after {faults.time_scale:g} of a cloud's time"
    elif healed is not None:
        text += (
            f", healed after {healed:g} s" if isinstance(healed, int | float) else f", healed by {json.dumps(healed)}"
        )
    return " ".join([text, *(f"{name} {value}" for name, value in sorted(said.items()))])


def _digest(document: object) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:KEY_DIGITS]
