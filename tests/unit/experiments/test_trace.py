"""A trace becomes listed faults, or is refused in one line that names the place."""

import json

import pytest

from experiments import spec
from experiments.errors import BadInput
from experiments.faults import FaultSpec, ListedFault
from experiments.trace import with_trace

HOSTS = {"a": (), "b": ()}


@pytest.fixture
def replay(tmp_path):
    """Read a trace of this text as part of a spec of 100 s."""

    def read(text, name="trace.csv", **fields):
        path = tmp_path / name
        path.write_bytes(text.encode("latin-1"))
        return with_trace(FaultSpec(**{"duration": 100, "hosts": HOSTS, "trace": str(path)} | fields))

    return read


def test_a_csv_trace(replay):
    read = replay("at,targets,kind,heal_after,cause\n1.5,a;b,pause,30,rack\n20,b,,,\n")
    assert read.trace is None
    assert read.events == (
        ListedFault(at=1.5, targets=("a", "b"), kind="pause", heal_after=30, cause="rack"),
        ListedFault(at=20, targets=("b",), cause="trace"),
    )


def test_a_json_trace_follows_what_is_listed(replay):
    listed = ListedFault(at=50, targets=("a",))
    text = json.dumps({"events": [{"at": 2, "targets": ["b"]}], "implied": {}})
    read = replay(text, "trace.json", events=(listed,))
    assert read.events == (listed, ListedFault(at=2, targets=("b",), cause="trace"))


def test_what_a_trace_has_beyond_the_duration_is_left_out(replay):
    text = "at,targets\n1,a\n99.9,a\n100,a\n5e5,b\n"
    assert [fault.at for fault in replay(text).events] == [1, 99.9]
    assert [fault.at for fault in replay(text, duration=None).events] == [1, 99.9, 100, 5e5]
    assert replay("at,targets\n").events == ()


def test_a_spec_without_a_trace_stays_as_it_is():
    law = FaultSpec(hosts=HOSTS)
    assert with_trace(law) is law


@pytest.mark.parametrize(
    ("name", "text", "value", "allowed"),
    [
        ("t.csv", "at,targets\n1,a\n2,c\n", "fault 2: targets 'c'", "a host of the spec: a, b"),
        ("t.csv", "at,targets\n5,a\n2,b\n", "fault 2: at 2", "order of their times, 5 or later"),
        ("t.csv", "at,targets\n-1,a\n", "fault 1: at '-1'", "a number of 0 or more"),
        ("t.csv", "at,targets\nnan,a\n", "fault 1: at 'nan'", "finite"),
        ("t.csv", "at,targets\nsoon,a\n", "fault 1: at 'soon'", "a number"),
        ("t.csv", "at,targets\n1,\n", "fault 1: targets", "required"),
        ("t.csv", "at,targets\n100,a\n200,b\n", "the first fault at 100", "before the duration of 100 s is over"),
        ("t.csv", "at,targets\n1,a;a\n", "fault 1: targets ['a', 'a']", "every host once"),
        ("t.csv", "at,targets,kind\n1,a,boom\n", "fault 1: kind 'boom'", "'kill'"),
        ("t.csv", "at,targets\n1,a,kill\n", "fault 1: surplus cells", "no such field"),
        ("t.csv", "time,host\n1,a\n", "time, host", "the columns at, targets"),
        ("t.csv", "at,targets,rack\n1,a,r\n", "at, targets, rack", "the columns at, targets"),
        ("t.csv", "", "t.csv", "the columns at, targets"),
        ("t.csv", 'at,targets\n1,"a', "t.csv", "valid CSV"),
        ("t.csv", "at,targets\n1,\xff\n", "t.csv", "valid CSV"),
        ("t.json", "[]", "t.json", "a JSON object"),
        ("t.json", "{", "t.json", "valid JSON"),
        ("t.json", '{"events": 3}', "t.json", 'a list "events"'),
        ("t.json", '{"events": [3]}', "t.json", 'a list "events"'),
        ("t.json", '{"events": [{"at": NaN, "targets": ["a"]}]}', "fault 1: at", "finite"),
        ("t.json", '{"events": [{"at": true, "targets": ["a"]}]}', "fault 1: at True", "a number"),
        ("t.json", '{"events": [{"at": 1, "targets": ["a"], "colour": 1}]}', "fault 1: colour", "no such field"),
    ],
)
def test_a_trace_that_cannot_be_replayed_is_named_in_one_line(replay, name, text, value, allowed):
    with pytest.raises(BadInput) as mistake:
        replay(text, name)
    assert mistake.value.field == "trace"
    assert value in mistake.value.value
    assert allowed in mistake.value.allowed
    assert "\n" not in str(mistake.value)


@pytest.mark.parametrize("name", ["nowhere.csv", "nowhere.json", "."])
def test_a_trace_that_is_not_there_is_named(name):
    with pytest.raises(BadInput, match="a readable") as mistake:
        with_trace(FaultSpec(duration=1, hosts=HOSTS, trace=name))
    assert mistake.value.field == "trace"


def test_an_experiment_lists_its_trace_and_outlives_the_file(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("at,targets\n3,worker-1;worker-2\n9,worker-2\n400,worker-2\n", encoding="utf-8")
    document = {"cluster": {"workers": 2}, "window_s": 60, "faults": {"trace": str(path)}}
    experiment = spec.validate(document)
    path.unlink()
    assert spec.validate(experiment.model_dump(mode="json")) == experiment
    assert [fault.at for fault in experiment.fault_spec.events] == [3, 9]
    assert experiment.faults.can_fail
    assert experiment.faults.hosts == {}


def test_an_experiment_refuses_a_trace_of_hosts_that_it_does_not_have(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("at,targets\n1,worker-9\n", encoding="utf-8")
    with pytest.raises(BadInput) as mistake:
        spec.validate({"faults": {"trace": str(path)}})
    assert mistake.value.field == "faults.trace"
