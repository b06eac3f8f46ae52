"""Any content of a document that cannot be used gives exit code 2, and one line that is safe to print."""

import json

import pytest

from aftershock.airflow import tasks, trigger_form
from aftershock.cli.program import main
from experiments import spec
from experiments.errors import BadInput

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
HOSTS = "duration: 5\nhosts: {h: []}\n"


@pytest.fixture
def refused(capsys):
    """Runs one call that must be refused; returns the line."""

    def call(*words):
        code = main(list(words))
        out, err = capsys.readouterr()
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert err.endswith("\n")
        assert err[:-1].isprintable(), repr(err)
        assert len(err) < 3000
        return err

    return call


@pytest.fixture
def written(tmp_path):
    def write(text, name="document.yaml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


@pytest.mark.extended
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name: 2026-02-30", "line 1, column 7: a date: put quotes around what is meant as a text"),
        ("name: 2026-02-28", "line 1, column 7: a date: put quotes"),
        ("window_s: !!bool x", "line 1, column 11"),
        ("window_s: !!int x", "line 1, column 11"),
        ("window_s: !!float x", "line 1, column 11"),
        ("window_s: !!timestamp x", "line 1, column 11"),
        ("window_s: !!binary x", "line 1, column 11"),
        ("window_s: !!set {a, b}", "line 1, column 11"),
        ("window_s: !!omap [a: 1]", "line 1, column 11"),
        ("window_s: !!python/name:os.system x", "line 1, column 11"),
        ("window_s: !!map [1]", "line 1, column 11"),
        ("window_s: =", "line 1, column 11"),
        ("seed: " + "9" * 5000, "a number of at most"),
        ("seed: 0x" + "f" * 5000, "a number of at most"),
        ("window_s: 1" + ":59" * 5000, "10,000 characters"),
        ("window_s: " + "9" * 5000 + ".5", "a number of at most"),
        ("name: " + "[" * 500 + "]" * 500, "not nested this deeply"),
        ("name: " + "{a: " * 500 + "1" + "}" * 500, "not nested this deeply"),
        ("name: &a [*a]", "itself"),
        ("name: &a {b: *a}", "itself"),
        (BOMB, "values"),
        ("<<: 1", "line 1"),
        ("a: &a {b: 1}\nc: {<<: [*a, 1]}", "line 2"),
        ("? [1]\n: 2", "line 1"),
        ("? {a: 1}\n: 2", "line 1"),
        ('name: "a\\0b"', "a text without"),
        ('name: "a\\ud800b"', ""),
        ("name: a\x00b", ""),
        ('"a\\nb": 1', "a\\nb"),
        ('"a\\e[31mb": 1', "a\\x1b[31mb"),
        ('"a\u202eb": 1', "a\\u202eb"),
        ('cluster: {"a\\r\\e]0;owned\\ab": 1}', ""),
        ("name: " + "a" * 1_000_000, "characters"),
        ("#" * 5_000_000, "bytes"),
        ("--- 1\n--- 2\n", "one document"),
        ("&a a: 1\n*a : 2", "each field once"),
        ("%YAML 9.9\n---\na: 1", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("words", [("benchmark", "FILE"), ("plan", "faults", "FILE", "--seed", "1", "--json")])
def test_yaml_that_cannot_be_used(refused, written, text, told, words):
    path = written(text)
    err = refused(*(path if word == "FILE" else word for word in words))
    assert path in err
    assert told in err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"operators": ' + "[" * 500 + "]" * 500 + "}", "not nested this deeply"),
        ('{"operators": ' + "[" * 100_000, "not nested this deeply"),
        ('{"operators": ' + "9" * 5000 + "}", "a number of at most"),
        ('{"operators": [{"name": "a\\ud800", "parallelism": 1}]}', "a text without"),
        ('{"operators": [{"name": "a\\u0000", "parallelism": 1}]}', "a text without"),
        ('{"operators": [{"name": "a", "parallelism": 1}], "a\\u001b[31m": 1}', "a\\x1b[31m"),
        ('{"operators": [{"name\\nx": "a", "name": "b", "parallelism": 1}]}', "name\\nx"),
        ('{"operators": "' + "a" * 1_000_000 + '"}', "characters"),
        ('{"operators": [' + "[]," * 3_000_000 + "1]}", "values"),
        (" " * 70_000_000, "bytes"),
        (b"\xff\xfe", "valid JSON"),
        (b"\xed\xa0\x80", "valid JSON"),
    ],
)
def test_json_that_cannot_be_used(refused, written, text, told):
    path = written(text, "topology.json")
    err = refused("predict", "fidelity", path, "--failed", "all")
    assert path in err
    assert told in err


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("faults.processes.²=1", "a position from 0 to"),
        ("faults.processes.²²²=1", "a position from 0 to"),
        ("faults.processes." + "9" * 5000 + "=1", "a position from 0 to"),
        ("faults.processes.٣=1", "a position from 0 to"),
        ("name=2026-02-30", "a date"),
        ("window_s=!!bool x", "YAML"),
        ("seed=" + "9" * 5000, "a number of at most"),
        ("name=" + "[" * 500, "not nested this deeply"),
        ("name=&a [*a]", "itself"),
        (f"name={BOMB}", "values"),
        ('name="a\\0"', "a text without"),
        ("a\nb=1", "a\\nb"),
        ("a\x1b[31mb.c=1", "a\\x1b[31mb"),
        ("a\udcff=1", "\\udcff"),
        ("name=\udcff", ""),
        ("name\x1b[31m", "\\x1b[31m"),
        ("faults.processes.0.rate.x=1", "below a mapping"),
        (".".join("a" * 500) + "=1", "not nested this deeply"),
        ("name={a: 1, a: 2}", "each field once"),
        ("<<=1", "<<"),
    ],
)
def test_an_override_that_cannot_be_used(refused, override, told):
    assert told in refused("benchmark", "wordcount", "--set", override)


def test_an_override_below_a_value(refused):
    assert "name.x" in refused("benchmark", "wordcount", "--set", "name.x=1")
    assert "name.x.y" in refused("benchmark", "wordcount", "--set", "name.x.y=1")


@pytest.mark.parametrize("name", ["/tmp/a\0b.csv", "/tmp/a\0b.json", "/tmp/\ud800.csv", "/tmp/\ud800.json"])
@pytest.mark.parametrize("way", ["json in yaml", "form"])
def test_a_path_that_no_file_can_have(refused, written, name, way):
    if way == "form":
        with pytest.raises(BadInput, match="a text without"):
            spec.validate(trigger_form.fold({"faults.trace": name}))
    else:
        text = json.dumps({"duration": 5, "hosts": {"h": []}, "trace": name})
        refused("plan", "faults", written(text), "--seed", "1")


def test_a_file_that_no_file_can_be(refused, tmp_path):
    for name in ("a\0b", "\ud800", str(tmp_path), "/dev/zero", "a" * 300):
        refused("plan", "faults", name, "--seed", "1")
        refused("benchmark", name + ".yaml" if name != "/dev/zero" else name)
        refused("predict", "fidelity", name, "--failed", "all")


@pytest.mark.parametrize("host", ["a\ud800b", "a\nb", "a\x1b[31mb", "a\u202eb", "a\0b", "", "a" * 5000])
def test_a_host_that_cannot_be_printed(refused, written, host):
    text = json.dumps({"duration": 5, "hosts": {host: []}, "processes": [{"rate": 1, "heal_after": 1}]})
    refused("plan", "faults", written(text), "--seed", "1")
    text = json.dumps({"duration": 5, "hosts": {"h": [host]}, "processes": [{"rate": 1, "scope": "domain"}]})
    refused("plan", "faults", written(text), "--seed", "1")


@pytest.mark.parametrize(
    "params",
    [
        {"seed": 1, "seed.x": 2},
        {"seed.x": 2, "seed": 1},
        {"faults.trace": None, "faults.trace.x": 1},
        {"faults.events": [], "faults.events.0": 1},
        {"workload": 3},
        {"workload": ["name"]},
        {"workload": {"name": ["nexmark"]}},
        {"workload": {"name": {}}},
        {"": 1},
        {"a..b": 1},
        {".": 1},
        {".".join("a" * 5000): 1},
        {"name": "a\ud800"},
        {"name\ud800": "a"},
        {"name": "\0"},
        {"workload.corpus": "a\0"},
        {"cluster.inventory": "a\0"},
        {"name": 10**5000},
        {"a\nb": 1},
    ],
)
def test_a_forms_configuration_that_cannot_be_used(params):
    with pytest.raises(BadInput) as told:
        spec.validate(trigger_form.fold(params))
    assert str(told.value).isprintable()
    assert len(str(told.value)) < 3000


@pytest.mark.parametrize("run_id", [5, True, ["a"], {"a": 1}, "a\n", "a\ud800", "../a", "A", 0, [], False])
def test_a_run_id_in_the_forms_configuration_that_is_none(run_id):
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match=r"run_id: .* is not usable; allowed: lower-case letters"):
        tasks.begin({"window_s": 20, "run_id": run_id}, "manual")


@pytest.mark.parametrize(
    ("domains", "process"),
    [("[]", "{rate: 1}"), ("[d-%d, e-%d]", "{rate: 1, scope: domain, domains: [d-1, d-2]}")],
)
def test_a_small_fault_spec_cannot_ask_for_a_thousand_million_clocks(refused, written, domains, process):
    hosts = ", ".join(f"h{i}: {domains.replace('%d', str(i))}" for i in range(4000))
    processes = ", ".join([process] * 4000)
    path = written(f"duration: 1\nhosts: {{{hosts}}}\nprocesses: [{processes}]\n")
    assert "at most 1,000,000" in refused("plan", "faults", path, "--seed", "1")
