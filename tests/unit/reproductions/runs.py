"""Runs of experiments, made up: what measured reproductions are tested on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from experiments.spec import Experiment
from reproductions.catalogue import CATALOGUE
from reproductions.reproduce import missing_runs
from reproductions.reproduction import Computed
from results.checks.check import is_to_be_busy
from results.checks.subjects.ledger import SATURATED
from results.publication import publish_results
from results.runs import store
from results.runs.machine import experiment_digest, machine_class
from results.runs.store import Run, write_json
from results.tables.schema import SCHEMA_VERSION, TABLES
from tests.unit.results.synthetic import START_NS, ns

Tables = dict[str, list[dict[str, Any]]]


def put_run(experiment: Experiment, tables: Tables, started_ns: int = START_NS, **status: Any) -> Run:
    """A finished run below $AFTERSHOCK_HOME; what rows of its tables leave out is null where that may be."""
    run_id = f"{experiment.name}-{experiment.seed}-{started_ns}"
    run = store.live(run_id)
    about = {
        "run_id": run_id,
        "experiment": experiment.name,
        "experiment_digest": experiment_digest(experiment),
        "machine": machine_class(),
        "state": "done",
        "schema_version": SCHEMA_VERSION,
        "started_ns": started_ns,
        "ended_ns": started_ns + round((experiment.window_s + 100) * 1e9),
        "error": None,
    }
    write_json(run.root / "status.json", about | status)
    busy = {"check": SATURATED, "table": "ledger", "verdict": "pass"}
    usual = {"runs": [_facts(run_id, experiment)], "verdicts": [busy] if is_to_be_busy(experiment) else []}
    for name, rows in (usual | tables).items():
        nothing = _left_out(name)
        run.write_table(name, pa.Table.from_pylist([nothing | row for row in rows], schema=TABLES[name]))
    return store.publish(run)


def put_published_run(experiment: Experiment, tables: Tables, started_ns: int = START_NS, **status: Any) -> str:
    """The run as another installation has published it below $AFTERSHOCK_PUBLISHED; returns its id."""
    run = put_run(experiment, tables, started_ns, **status)
    run.experiment_path.write_text(experiment.model_dump_json())
    publish_results([run.run_id])
    store.remove(run.run_id)
    return run.run_id


def computed_on(id: str, tables_of: Callable[[Experiment], Tables], size: int = 1) -> Computed:
    """What a figure comes to once every run that it lacks is put below $AFTERSHOCK_HOME."""
    for experiment in missing_runs(id, size):
        put_run(experiment, tables_of(experiment))
    return Computed(id, CATALOGUE[id].compute(size, lambda done, total: None))


def computed_once(tables_of: Callable[[Experiment], Tables]) -> Any:
    """A fixture: the same by figure in a home of its own, made once for all checks that are judged on it."""

    @pytest.fixture(scope="module")
    def found_in(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Computed]:
        @cache
        def made(id: str, size: int = 1) -> Computed:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("AFTERSHOCK_HOME", str(tmp_path_factory.mktemp("home")))
                return computed_on(id, tables_of, size)

        return made

    return found_in


def _left_out(name: str) -> dict[str, Any]:
    anything = {pa.string(): "any", pa.bool_(): False}
    return {field.name: None if field.nullable else anything.get(field.type, 0) for field in TABLES[name]}


def _facts(run_id: str, experiment: Experiment) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "experiment": experiment.name,
        "seed": experiment.seed,
        "workers": experiment.cluster.workers,
        "window_s": experiment.window_s,
        "engine": experiment.engine.name.value,
        "protocol": experiment.engine.protocol_run.value,
        "window_start_ns": START_NS,
        "window_end_ns": ns(experiment.window_s),
    }


def facts(experiment: Experiment, **values: Any) -> list[dict[str, Any]]:
    """The row of the table `runs`, with these values."""
    return [_facts("", experiment) | values]


def checkpoints(partition: str, seconds: list[float], invalid: int = 0) -> list[dict[str, Any]]:
    """Checkpoints of a partition, one every five seconds; the last `invalid` of them could not be used."""
    rows = []
    for number, taken_s in enumerate(seconds, 1):
        about = {"partition": partition, "number": number, "completed_ns": ns(5 * number), "seconds": taken_s}
        left_behind = number > len(seconds) - invalid
        rows.append(about | {"size_bytes": 1000, "forced": False, "invalid": left_behind, "in_window": True})
    return rows
