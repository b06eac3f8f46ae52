"""The matrix of experiments: what its cells are, and the one line for each thing that can be wrong with it."""

import pytest
import yaml

from experiments import matrix, spec
from experiments.errors import BadInput
from experiments.matrix import Matrix, cells

DOCUMENT = """
common: {window_s: 40, engine: {partitions: 2}}
workloads: {words: {workload: {depth: 2}}, bids: {workload: {name: nexmark}, load: {mode: rate, rate: 10}}}
engines: {batch: {engine: {checkpoint_interval_s: 4}}}
protections: {query: {engine: {recovery: query}}, task: {engine: {recovery: task}}}
faults: {none: {}, kills: {faults: {processes: [{rate: 0.01}]}}}
seeds: [5, 6]
skip: [{protections: task, faults: none}]
"""
FIRST = "words-batch-query-none"


def made(change=""):
    return cells(Matrix.model_validate(yaml.safe_load(DOCUMENT) | yaml.safe_load(change or "{}")))


def test_every_entry_meets_every_other_but_for_those_left_out():
    found = [(cell.name, cell.seed) for cell in made()]
    words = [
        f"{workload}-batch-{rest}"
        for workload in ("words", "bids")
        for rest in ("query-none", "query-kills", "task-kills")
    ]
    assert found == [(name, seed) for seed in (5, 6) for name in words], "so that a slow hour strikes every entry alike"


def test_a_cell_is_the_experiment_that_its_entries_make():
    wanted = {
        "name": "bids-batch-task-kills", "seed": 6, "window_s": 40, "workload": {"name": "nexmark"},
        "load": {"mode": "rate", "rate": 10}, "faults": {"processes": [{"rate": 0.01}]},
        "engine": {"partitions": 2, "checkpoint_interval_s": 4, "recovery": "task"},
    }  # fmt: skip
    assert made()[-1] == spec.validate(wanted)


def test_an_entry_has_its_way_with_what_is_common():
    assert {cell.window_s for cell in made("faults: {none: {window_s: 20}}\nskip: []")} == {20}


@pytest.mark.parametrize(
    ("change", "field", "allowed"),
    [
        ("seeds: []", "seeds", "1 or more"),
        ("seeds: [-1]", "seeds.0", "0 or more"),
        ("seeds: [5, 5]", "seeds", "each seed once"),
        ("seeds: [5, true]", "seeds.1", "a whole number"),
        ("engines: {}", "engines", "1 or more"),
        ("engines: {Batch: {}}", "engines.Batch", "small letters, digits and hyphens"),
        ("engines: [a]", "engines", "a mapping of fields"),
        ("colour: red", "colour", "no such field"),
        ("skip: [{protocol: task}]", "skip.0.protocol", "no such field"),
        ("skip: [{protections: slow}]", "skip.0.protections", "query, task"),
        ("skip: [{protocols: task}]", "skip.0.protocols", "the same under protections"),
        ("skip: [{}]", "skip.0", "an entry of workloads"),
        ("skip: [{engines: batch}]", "matrix", "1 to 1024"),
        ("seeds: [" + ", ".join(map(str, range(200))) + "]", "matrix", "1 to 1024"),
        ("faults: {none: {seed: 3}}\nskip: []", "faults.none.seed", "the matrix itself does not"),
        ("common: {name: mine}", "common.name", "the matrix itself does not"),
        ("faults: {none: {engine: {recovery: task}}}\nskip: []", "faults.none.engine.recovery", "query does not"),
        ("engines: {batch: {engine: {checkpoint_interval_s: 0}}}", f"{FIRST}: engine.checkpoint_interval_s", ""),
        ("workloads: {words: {load: {colour: red}}}", f"{FIRST}: load.colour", "no such field"),
        ("workloads: {" + "w" * 60 + ": {}}", "w" * 60 + "-batch-query-none: name", ""),
        ("faults: {none: {}, nothing: {}}\nskip: []", "matrix", "cells that differ"),
        (
            "workloads: {words: {}, words-a: {window_s: 50}}\nengines: {batch: {}, a-batch: {cluster: {workers: 2}}}",
            "matrix",
            "cells with different names",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(tmp_path, change, field, allowed):
    path = tmp_path / "matrix.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(DOCUMENT) | yaml.safe_load(change), sort_keys=False))
    with pytest.raises(BadInput) as refused:
        matrix.load(str(path))
    assert refused.value.field == field
    assert allowed in refused.value.allowed
    assert str(refused.value).startswith(f"{path}: {field}: ")
    assert "\n" not in str(refused.value)


def test_a_file_of_old_is_told_the_new_name_of_its_axis(tmp_path):
    path = tmp_path / "matrix.yaml"
    path.write_text(DOCUMENT.replace("protections", "protocols"))
    with pytest.raises(BadInput) as refused:
        matrix.load(str(path))
    assert str(refused.value).startswith(f"{path}: protocols: ")
    assert str(refused.value).endswith("; allowed: the same under protections, as this axis is called now")
    assert "\n" not in str(refused.value)


def test_a_matrix_in_the_users_home_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.yaml").write_text(DOCUMENT, encoding="utf-8")
    assert matrix.load("~/mine.yaml") == made()


def test_an_unknown_matrix_is_told_the_known_ones():
    with pytest.raises(BadInput, match="nightly"):
        matrix.load("no-such-matrix")


def test_the_nightly_matrix_has_replicates_and_controls():
    found = matrix.load()
    names = {cell.name for cell in found}
    assert len(found) == 2 * len(names)
    assert {cell.name for cell in found if not cell.faults.can_fail} == {
        name for name in names if name.endswith("-none")
    }


def test_protections_are_held_side_by_side_with_and_without_faults_under_three_seeds():
    found = matrix.load("protections")
    protections = {(cell.engine.protocol, cell.engine.recovery_run) for cell in found}
    cells = {(cell.engine.protocol, cell.faults.can_fail, cell.seed) for cell in found}
    assert len(protections) * 2 * 3 == len(cells) == len(found)


def test_engines_are_held_side_by_side_beside_the_protections_of_the_testbed():
    found, testbed = matrix.load("engines"), matrix.load("protections")
    recoveries = {(cell.engine.name.value, cell.engine.recovery_run.value) for cell in found}
    spark, dataflow = "structured-streaming", "dataflow"
    assert recoveries == {(spark, "query"), (spark, "task"), (dataflow, "global"), (dataflow, "passive")}
    assert len(found) == 7 * 3, "in four protections, three of them also without faults, under three seeds each"
    alike = {(cell.workload, cell.cluster, cell.load, cell.window_s, cell.faults.processes) for cell in found}
    assert alike == {(cell.workload, cell.cluster, cell.load, cell.window_s, cell.faults.processes) for cell in testbed}
    assert len({cell.engine.checkpoint_interval_s for cell in found + testbed}) == 1
    protections = {cell.engine for cell in found if cell.engine.name.value == dataflow}
    assert protections < {cell.engine for cell in testbed}, "so that runs of both are in the same rows"


def test_the_output_log_is_held_beside_other_protocols_on_one_workload():
    found = matrix.load("output-log")
    assert len({cell.workload for cell in found}) == len({cell.cluster for cell in found}) == 1
    protocols = {(cell.engine.protocol_run.value, cell.engine.recovery_run.value) for cell in found}
    others = {("coordinated", "global"), ("uncoordinated", "global"), ("batch-aligned", "passive")}
    assert protocols == {*others, ("output-log", "passive")}
    logs = {cell.engine for cell in found if cell.engine.protocol_run == "output-log"}
    assert {(engine.log_extent is None, engine.log_failure_rate is None) for engine in logs} == {
        (False, True),
        (True, False),
    }
    engines = {(cell.engine, cell.faults.can_fail, cell.seed) for cell in found}
    assert len(engines) == len(found) == 5 * 2 * 3
    assert len({cell.engine.checkpoint_interval_s for cell in found}) == 1
    rates = {fault.rate for cell in found for fault in cell.faults.processes}
    assert {engine.log_failure_rate for engine in logs} - {None} == rates, "a host's rate is that of its partitions"


def test_a_small_matrix_cannot_ask_for_a_million_million_combinations(tmp_path):
    axis = "{" + ", ".join(f"a{i}: {{}}" for i in range(1000)) + "}"
    path = tmp_path / "matrix.yaml"
    path.write_text("".join(f"{name}: {axis}\n" for name in matrix.AXES) + "seeds: [1]\n")
    with pytest.raises(BadInput, match="1000000000000 combinations"):
        matrix.load(str(path))
