"""The experiment: what is accepted, what overrides do, and how a mistake is named."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import spec
from experiments.documents.parsing import parse
from experiments.errors import BadInput
from experiments.faults import FaultSpec
from experiments.misfits import engine as engine_misfits
from experiments.recovery_modes import RecoveryMode
from experiments.spec import Experiment
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec, WordCountSpec


@pytest.fixture
def experiment_file(tmp_path):
    path = tmp_path / "mine.yaml"
    faults = "hosts: {worker-1: [rack-a], worker-2: []}, processes: [{rate: 0.01}, {rate: 0.02, scope: domain}]"
    path.write_text(f"name: mine\nfaults: {{{faults}}}\n", encoding="utf-8")
    return str(path)


def test_every_example_is_valid_and_survives_json():
    assert "wordcount" in spec.available()
    for name in spec.available():
        experiment = spec.load(name)
        assert spec.validate(json.loads(json.dumps(experiment.model_dump(mode="json")))) == experiment


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n", "null"])
def test_an_empty_file_is_no_experiment(tmp_path, text):
    path = tmp_path / "empty.yaml"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"empty\.yaml.*a YAML mapping of fields; \{\} is one without fields") as refusal:
        spec.load(str(path), ["seed=2"])
    assert refusal.value.field == "experiment"


def test_all_fields_may_be_left_out(tmp_path):
    path = tmp_path / "default.yaml"
    path.write_text("{}")
    assert spec.load(str(path)) == Experiment()


@pytest.mark.parametrize(
    ("override", "read"),
    [
        ("load.rate=5000", lambda e: e.load.rate == 5000.0),
        ("load.rate=5_000", lambda e: e.load.rate == 5000.0),
        ("load.rate=5e3", lambda e: e.load.rate == 5000.0),
        ("seed=010", lambda e: e.seed == 10),
        ("engine.recovery=task", lambda e: e.engine.recovery is RecoveryMode.TASK),
        ("workload.corpus=/usr/share/doc", lambda e: e.workload.corpus == "/usr/share/doc"),
        ("workload.corpus=null", lambda e: e.workload.corpus is None),
        ("faults.processes.1.rate=0.5", lambda e: [p.rate for p in e.faults.processes] == [0.01, 0.5]),
        ("faults.processes=[]", lambda e: e.faults.processes == ()),
        ("faults.processes.0.heal_after={low: 1, high: 3}", lambda e: e.faults.processes[0].heal_after.high == 3),
        ("faults.processes.0={rate: 0.3}", lambda e: [p.rate for p in e.faults.processes] == [0.3, 0.02]),
    ],
)
def test_an_override_replaces_one_field(experiment_file, override, read):
    changed = spec.load(experiment_file, [override])
    assert read(changed)
    assert changed.name == "mine"


def test_the_last_override_of_a_field_holds(experiment_file):
    assert spec.load(experiment_file, ["seed=1", "seed=2"]).seed == 2


@pytest.mark.parametrize(
    ("override", "field", "allowed"),
    [
        ("cluster.wrokers=3", "cluster.wrokers", "no such field"),
        ("nothing=3", "nothing", "no such field"),
        ("cluster.workers=many", "cluster.workers", "a whole number"),
        ("cluster.workers=2.5", "cluster.workers", "a whole number"),
        ("cluster.workers=0", "cluster.workers", "a number of 1 or more"),
        ("cluster.worker_disk_mb=1048580", "cluster.worker_disk_mb", "a number of 1,048,576 or less"),
        ("cluster.driver=cloud", "cluster.driver", "'local'"),
        (f"seed={2**63}", "seed", "a number below 9,223,372,036,854,775,808"),
        ("workload={name: top-100, parallelism: [8, 4, 2, 1]}", "workload.parallelism", "at most 3"),
        ("engine.checkpoint_interval_s=-1", "engine.checkpoint_interval_s", "a number of 0.001 or more"),
        ("engine.checkpoint_interval_s=.nan", "engine.checkpoint_interval_s", "finite"),
        ("load.rate=-5", "load.rate", "a number of 0.001 or more"),
        ("load.rate=1e-300", "load.rate", "a number of 0.001 or more"),
        ("window_s=.inf", "window_s", "a finite number"),
        ("load.rate=.nan", "load.rate", "a finite number"),
        ("load.rate=nan", "load.rate", "a finite number"),
        ("name=A Name", "name", "1 to 63 small letters"),
        ("faults.processes.1.rate=-0.1", "faults.processes.1.rate", "a number above 0"),
        ("faults.processes.0.heal_after=-1", "faults.processes.0.heal_after", "a number of 0 or more"),
        ("faults.processes.0.heal_after=1e12", "faults.processes.0.heal_after", "a number of 1e+09 or less"),
        ("faults.processes.0.heal_after={low: 1, high: 1e12}", "faults.processes.0.heal_after.high", "1e+09 or less"),
        ("faults.processes.0.heal_after={median: 1e7, sigma: 1}", "faults.processes.0.heal_after.median", "500000 or"),
        ("faults.events=[{at: 1, targets: [worker-1], heal_after: 1e12}]", "faults.events.0.heal_after", "1e+09 or"),
        ("faults.processes.0={kind: slow, rate: 1, delay: 61, heal_after: 1}", "faults.processes.0.delay", "60 or"),
        ("load.probe_s=604801", "load.probe_s", "a number of 604800 or less"),
        ("faults.time_scale=1e7", "faults.time_scale", "a number of 1e+06 or less"),
        (f"faults.max_down={2**63}", "faults.max_down", "a number of 1e+06 or less"),
        (f"engine.log_extent={2**63}", "engine.log_extent", "a number of 1e+12 or less"),
        (f"engine.log_replay={2**63}", "engine.log_replay", "a number of 1e+12 or less"),
        ("engine.checkpoint_interval_s=1e6", "engine.checkpoint_interval_s", "a number of 604800 or less"),
        ("engine.batch_length_s=1e-9", "engine.batch_length_s", "a number of 0.001 or more"),
        ("workload.corpus=''", "workload.corpus", "a text that is not empty"),
        ("workload={name: window-tree, moves_every: 10000000000000}", "workload.moves_every", "a number of 1e+12 or"),
        ("name=123", "name", "a text: put quotes around it"),
        ("name=yes", "name", "a text: put quotes around it"),
        ("faults.processes.0={rat: 0.1}", "faults.processes.0.rat", "no such field; known are kind"),
        ("faults.processes.0.heal_after={mean: 2}", "faults.processes.0.heal_after.mean", "known are low, high"),
        (
            "faults.processes.0.heal_after={low: 5, high: 1}",
            "faults.processes.0.heal_after.high",
            "a number of low, 5, or more",
        ),
        ("faults.processes.0.spread=3", "faults.processes.0.spread", "none with scope host"),
        ("faults.hosts={worker-77: []}", "faults.hosts", "the cluster's hosts: worker-1"),
        ("faults.duration=999999", "faults.duration", "at most window_s, 240 s"),
        ("faults.events=[{at: 240, targets: [worker-1]}]", "faults.events.0.at", "below the duration of 240 s"),
        ("faults.events=[{at: 1, targets: [gateway]}]", "faults.events.0.targets", "broker-kill, driver-kill"),
        ("faults.hosts={worker-1: []}", "faults.processes.1.scope", "as long as no host names its domains"),
        ("faults.processes.1.domains=[rack-b]", "faults.processes.1.domains", "rack-a"),
        ("faults.processes.0.rate=1e9", "faults.processes", "at most 1,000,000 faults"),
        ("faults.trace=nowhere.csv", "faults.trace", "a readable CSV file"),
        ("workload={window_s: 30, slide_s: 7}", "workload.window_s", "a multiple of slide_s"),
        ("workload={window_s: 1, slide_s: 0.3}", "workload.window_s", "a multiple of slide_s"),
        ("workload.slide_s=1.0005", "workload.slide_s", "whole number of milliseconds"),
        ("workload.slide_s=0.0004", "workload.slide_s", "whole number of milliseconds"),
        ("workload.window_s=1e306", "workload.window_s", "604800 or less"),
        ("workload.name=nexmrk", "workload.name", "'wordcount' or 'nexmark'"),
        ("workload=nexmark", "workload", "a mapping of fields"),
        ("workload={name: nexmark, query: q23}", "workload.query", "'q22'"),
        ("workload={name: nexmark, depth: 2}", "workload.depth", "no such field"),
        ("workload={name: nexmark, hot_bidders: 1.5}", "workload.hot_bidders", "a number of 1 or less"),
        ("workload={name: nexmark, window_s: 3, slide_s: 2}", "workload.window_s", "a multiple of slide_s"),
        ("workload.query=q1", "workload.query", "no such field"),
        ("faults.processes.0.law=weibull", "faults.processes.0.shape", "a number from 0.2 to 100 with law weibull"),
        ("faults.processes.0.shape=2", "faults.processes.0.shape", "none with law exponential"),
        ("faults.processes.0.domains=[rack-a]", "faults.processes.0.domains", "none with scope host"),
        ("window_s=1:30", "window_s", "a number"),
        ("seed=1:30", "seed", "a whole number"),
        ("window_s=true", "window_s", "a number"),
        ("seed=false", "seed", "a whole number"),
        ("engine.records_per_message=true", "engine.records_per_message", "a whole number"),
        ("faults.processes.0.rate=yes", "faults.processes.0.rate", "a number"),
        ("faults.processes.0.heal_after=true", "faults.processes.0.heal_after", "a number"),
        ("faults.processes.0.heal_after={low: true, high: 2}", "faults.processes.0.heal_after.low", "a number"),
        ("faults.events=[{at: true, targets: [worker-1]}]", "faults.events.0.at", "a number"),
        ("seed", "--set", "field.subfield=value"),
        ("=5", "--set", "field.subfield=value"),
        ("..a=5", "--set", "field.subfield=value"),
        ("cluster.inventory=''", "cluster.inventory", "a text that is not empty"),
        ("faults.hosts={1: []}", "faults.hosts.1", "a text"),
        ("load.rate={", "--set", "valid YAML (line 2, column 1: "),
        ("name.first=x", "--set", "a field below a mapping; name is a value"),
        ("faults.processes.9.rate=1", "--set", "a position from 0 to 1"),
        ("faults.processes.first.rate=1", "--set", "a position from 0 to 1"),
    ],
)
def test_a_mistake_is_named_in_one_line(experiment_file, override, field, allowed):
    with pytest.raises(BadInput) as mistake:
        spec.load(experiment_file, [override])
    assert mistake.value.field == field
    assert allowed in mistake.value.allowed
    assert "\n" not in str(mistake.value)
    assert mistake.value.exit_code == 2


def test_a_number_of_thousands_of_digits_is_told_in_words_of_ours():
    with pytest.raises(BadInput, match=r"^seed: .* allowed: a whole number of fewer digits$"):
        spec.validate({"seed": "1" * 5000})


@pytest.mark.parametrize(
    ("text", "overrides", "told"),
    [
        ("engine: {intervall_s: 3}", [], "mine.yaml: engine.intervall_s: 3 is not usable; allowed: no such field"),
        ("engine: {intervall_s: 3}", ["engine.partitions=4"], "mine.yaml: engine.intervall_s: 3"),
        ("window_s: 20\nwindow_s: 30", [], "mine.yaml: window_s: 'given twice'"),
        ("faults: {duration: 90}", ["window_s=60"], "mine.yaml: faults.duration: 90.0"),
        ("faults: {trace: nowhere.csv}", [], "mine.yaml: faults.trace: 'nowhere.csv'"),
        ("faults: {duration: 30}", ["faults.duration=999"], "faults.duration: 999.0"),
        ("load: {rate: 5}", ["load={rate: -5}"], "load.rate: -5"),
        ("load: {rate: 5}", ["load.nothing.below=1"], "load.nothing: {'below': 1}"),
    ],
)
def test_a_mistake_in_a_file_is_told_with_the_file_and_that_of_an_override_without(
    tmp_path, monkeypatch, text, overrides, told
):
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput) as mistake:
        spec.load("mine.yaml", overrides)
    assert str(mistake.value).startswith(told)


OWN_JOB = {
    "workload": {"name": "own-job", "program": "a.py", "inputs": {"a": {"file": "a"}}},
    "engine": {"recovery": "task"},
    "load": {"mode": "rate"},
}


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"faults": {"processes": [{"kind": "kill"}]}}, "faults.processes.0.rate: left out; allowed: a value"),
        ({"faults": {"events": [{"at": 1}]}}, "faults.events.0.targets: left out; allowed: one host or more"),
        ({"faults": {"events": [{"at": 1, "targets": []}]}}, "faults.events.0.targets: [] is not usable; allowed: one"),
        (
            {"faults": {"processes": [{"kind": "pause", "rate": 1}]}},
            "faults.processes.0.heal_after: left out; allowed: a delay in seconds",
        ),
        (
            {"faults": {"processes": [{"law": "weibull", "rate": 1}]}},
            "faults.processes.0.shape: left out; allowed: a number from",
        ),
        (
            OWN_JOB | {"workload": OWN_JOB["workload"] | {"arguments": ["{output_topic}"]}},
            "workload.output_topic: left out; allowed: a topic: an argument asks for it",
        ),
        ({"window_s": None}, "window_s: null is not usable; allowed: a number"),
    ],
)
def test_a_field_that_was_left_out_is_told_as_that_and_a_null_as_yaml_has_it(document, told):
    with pytest.raises(BadInput) as mistake:
        spec.validate(document)
    assert str(mistake.value).startswith(told)


@pytest.mark.parametrize(
    ("rate", "allowed"),
    [
        ("1/60", "a number: write 0.0166667"),
        (" 3 / 4 ", "a number: write 0.75"),
        ("1/0", "a number"),
        ("x", "a number"),
    ],
)
def test_the_refusal_of_a_fraction_says_what_to_write(rate, allowed):
    """A mean of 60 s between faults is a rate of 1/60."""
    with pytest.raises(BadInput) as mistake:
        spec.validate({"faults": {"processes": [{"kind": "kill", "rate": rate}]}})
    assert (mistake.value.field, mistake.value.allowed) == ("faults.processes.0.rate", allowed)


@pytest.mark.parametrize("written", [{}, {"load": {}}, {"load": {"rate": 5}}])
def test_a_value_that_the_user_never_wrote_is_refused_as_the_default(written):
    with pytest.raises(BadInput) as mistake:
        spec.validate({name: OWN_JOB[name] for name in ("workload", "engine")} | written)
    assert str(mistake.value).startswith("load.mode: 'saturating' is not usable; allowed: rate or sustainable")
    assert str(mistake.value).endswith(" (the field is not set: this is its default)")


def test_a_value_that_the_user_wrote_is_not_called_the_default():
    conf = {"spark.redaction.password": "x"}
    for wrong in ({"load": {"mode": "saturating"}}, {"workload": OWN_JOB["workload"] | {"conf": conf}}):
        with pytest.raises(BadInput) as mistake:
            spec.validate(OWN_JOB | wrong)
        assert "default" not in str(mistake.value)


SUSTAINABLE = "load={mode: sustainable}"


def test_a_probe_lasts_for_eight_checkpoint_intervals_and_ten_seconds(experiment_file):
    assert spec.load(experiment_file, [SUSTAINABLE]).probe_s == 64
    assert spec.load(experiment_file, [SUSTAINABLE, "engine.checkpoint_interval_s=1"]).probe_s == 10
    assert spec.load(experiment_file, [SUSTAINABLE, "load.probe_s=48"]).probe_s == 48


@pytest.mark.parametrize(
    ("override", "field", "allowed"),
    [
        ("load.probe_s=47", "load.probe_s", "at least 48 s, which is 6 checkpoint intervals"),
        ("load.precision=0", "load.precision", "a number of 0.001 or more"),
        ("load.probes=1", "load.probes", "a number of 2 or more"),
        ("load.share=1.01", "load.share", "a number of 1 or less"),
    ],
)
def test_what_a_search_cannot_do_is_named_in_one_line(experiment_file, override, field, allowed):
    with pytest.raises(BadInput, match=allowed) as mistake:
        spec.load(experiment_file, [SUSTAINABLE, override])
    assert mistake.value.field == field


def test_only_a_search_minds_how_long_a_probe_is(experiment_file):
    assert spec.load(experiment_file, ["load.mode=rate", "load.probe_s=1"])


REAL_TIME = ["engine.trigger=real-time", "workload.depth=0", "load.mode=rate", "engine.partitions=3"]


def test_real_time_mode_with_what_goes_with_it(experiment_file):
    assert spec.load(experiment_file, REAL_TIME).engine.trigger is spec.TriggerMode.REAL_TIME
    assert spec.load(experiment_file, [*REAL_TIME, "engine.checkpoint_interval_s=5"])
    assert spec.load(experiment_file, [*REAL_TIME, "cluster.worker_cores=4", "engine.partitions=12"]).cores == 12


@pytest.mark.parametrize(
    ("override", "field", "value", "allowed"),
    [
        ("workload.depth=1", "workload.depth", 1, "0 in real-time mode: Spark .* runs no stateful"),
        (
            "workload={name: nexmark, query: q3}",
            "workload.query",
            "q3",
            "q0, q1, q2, q10, q13, q14, q21, q22 in real-time",
        ),
        ("load.mode=saturating", "load.mode", "saturating", "rate in real-time mode"),
        ("engine.checkpoint_interval_s=4.9", "engine.checkpoint_interval_s", 4.9, "at least 5 in real-time mode"),
        ("engine.partitions=4", "engine.partitions", 4, "at most 3 in real-time mode"),
        ("cluster.workers=2", "engine.partitions", 3, "at most 2 in real-time mode"),
    ],
)
def test_what_real_time_mode_cannot_run_is_named_in_one_line(experiment_file, override, field, value, allowed):
    with pytest.raises(BadInput, match=allowed) as mistake:
        spec.load(experiment_file, [*REAL_TIME, override])
    assert (mistake.value.field, mistake.value.value) == (field, value)
    assert "\n" not in str(mistake.value)


def test_the_refusal_of_state_names_the_version_of_spark(experiment_file, monkeypatch):
    """A later one may run it."""
    monkeypatch.setattr(engine_misfits, "version", lambda package: f"9.8 of {package}")
    with pytest.raises(BadInput, match=r"Spark 9\.8 of pyspark runs no stateful operator in it"):
        spec.load(experiment_file, [*REAL_TIME, "workload.depth=1"])


@pytest.mark.parametrize("override", ["workload.depth=0", "workload.depth=8", "engine.checkpoint_interval_s=0.5"])
def test_micro_batches_run_at_any_depth_and_interval(experiment_file, override):
    assert spec.load(experiment_file, [override])


@pytest.mark.parametrize(
    ("text", "allowed"), [("[1, 2]", "a YAML mapping"), ("a: [", "valid YAML"), ("name: \xff", "valid YAML")]
)
def test_a_file_that_is_no_mapping_is_named(tmp_path, text, allowed):
    path = tmp_path / "broken.yaml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(BadInput, match=allowed) as mistake:
        spec.load(str(path))
    assert mistake.value.value == str(path)
    assert "\n" not in str(mistake.value)


@pytest.mark.parametrize("source", ["no-such-example", "no/such/file.yaml", "."])
def test_an_experiment_that_is_not_there_is_named_with_the_examples(source):
    with pytest.raises(BadInput, match="wordcount") as mistake:
        spec.load(source)
    assert (mistake.value.field, mistake.value.value) == ("experiment", source)


def test_faults_default_to_all_workers_and_the_whole_window():
    experiment = Experiment.model_validate({"cluster": {"workers": 2}, "window_s": 50})
    assert experiment.fault_spec.duration == 50
    assert experiment.fault_spec.hosts == {"worker-1": (), "worker-2": ()}


@given(st.integers(1, 10_000), st.integers(1, 50))
def test_any_window_of_whole_milliseconds_is_accepted_whatever_its_float(slide_ms, panes):
    workload = WordCountSpec(window_s=slide_ms * panes / 1000, slide_s=slide_ms / 1000)
    assert (workload.window_ms, workload.slide_ms) == (slide_ms * panes, slide_ms)


def test_a_window_of_one_second_slides_by_a_tenth():
    workload = WordCountSpec(window_s=1, slide_s=0.1)
    assert (workload.window_ms, workload.slide_ms) == (1000, 100)


@given(st.floats(1e-6, 10), st.floats(1e-6, 10), st.integers(1, 9), st.integers(1, 4))
def test_the_failure_rate_is_the_sum_over_all_clocks(per_host, per_domain, hosts, domains):
    members = {f"h{i}": (f"d{i % domains}",) for i in range(hosts)}
    law = {"hosts": members, "processes": [{"rate": per_host}, {"rate": per_domain, "scope": "domain"}]}
    expected = hosts * per_host + min(hosts, domains) * per_domain
    assert FaultSpec.model_validate(law).failure_rate == pytest.approx(expected)


def test_listed_faults_count_in_the_failure_rate_by_the_duration():
    law = {"hosts": {"a": (), "b": ()}, "processes": [{"rate": 0.25}], "events": [{"at": 1, "targets": ["a", "b"]}] * 3}
    assert FaultSpec.model_validate(law | {"duration": 60}).failure_rate == pytest.approx(2 * 0.25 + 3 / 60)
    assert FaultSpec.model_validate({"processes": [{"rate": 0.25}]}).failure_rate == 0.0
    cluster = law | {"events": [], "processes": [{"rate": 0.25, "scope": "cluster"}]}
    assert FaultSpec.model_validate(cluster).failure_rate == 0.25


def test_the_longest_heal_is_that_of_processes_and_listed_faults():
    processes = [{"rate": 1, "heal_after": {"low": 1, "high": 9}}, {"rate": 1, "heal_after": 5}]
    events = [{"at": 1, "targets": ["a"], "heal_after": 11}]
    assert FaultSpec().longest_heal_s == 0
    assert FaultSpec.model_validate({"processes": processes}).longest_heal_s == 9
    assert FaultSpec.model_validate({"processes": processes, "events": events}).longest_heal_s == 11


def test_a_spread_shock_is_one_event_for_each_host_of_its_domain():
    hosts = {"h1": ("rack", "row"), "h2": ("rack", "row"), "h3": ("row",), "h4": ()}
    shock = {"rate": 0.5, "scope": "domain"}
    at_once = FaultSpec.model_validate({"hosts": hosts, "processes": [shock]})
    spread = FaultSpec.model_validate({"hosts": hosts, "processes": [shock | {"spread": 3}]})
    assert at_once.failure_rate == 0.5 * 2
    assert spread.failure_rate == 0.5 * (2 + 3)


def test_a_workload_is_chosen_by_its_name(experiment_file):
    chosen = spec.load(experiment_file, ["workload.name=nexmark", "workload.query=q8"]).workload
    assert chosen == NexmarkSpec(query=NexmarkQuery.Q8)
    assert (chosen.title, chosen.depth, chosen.by_record) == ("nexmark q8", 1, True)
    assert isinstance(spec.load(experiment_file).workload, WordCountSpec)


@pytest.mark.parametrize(("query", "depth", "settling_ms"), [("q12", 1, 0), ("q9", 2, 10_000), ("q4", 3, 10_000)])
def test_averages_of_winning_bids_follow_on_the_winning_bids(query, depth, settling_ms):
    workload = NexmarkSpec(query=query, window_s=10.0)
    assert (workload.depth, workload.settling_ms, workload.by_record) == (depth, settling_ms, False)


@pytest.mark.parametrize(
    ("document", "known"),
    [
        ({"engine": {"chekpoint_interval_s": 4}}, "known are name, checkpoint_interval_s,"),
        ({"wokload": {}}, "known are name, cluster, workload,"),
        ({"workload": {"name": "nexmark", "depth": 2}}, "known are window_s, slide_s, name, query,"),
    ],
)
def test_a_field_that_there_is_not_is_told_those_that_there_are(document, known):
    with pytest.raises(BadInput, match=known):
        parse(Experiment, document, "experiment")


def test_an_experiment_in_the_users_home_is_found(tmp_path, monkeypatch):
    """No shell reads what a quoted argument or a form says."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.yaml").write_text("name: mine\n", encoding="utf-8")
    assert spec.load("~/mine.yaml").name == "mine"


def test_relative_paths_of_text_are_those_where_the_command_was_given(tmp_path, monkeypatch):
    """The generator of a run works in another directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    words = {"name": "wordcount", "corpus": "books"}
    assert spec.validate({"workload": words}).workload.corpus == str(tmp_path / "books")
    assert spec.validate({"workload": {"corpus": "~/books"}}).workload.corpus == str(tmp_path / "home" / "books")
    inputs = {"a": {"workload": words}, "b": {"file": "b.txt"}, "c": {"workload": {"name": "nexmark"}}}
    own = {"name": "own-job", "program": "job.py", "inputs": inputs}
    job = spec.validate({"workload": own, "load": {"mode": "rate"}, "engine": {"recovery": "task"}}).workload
    assert job.inputs["a"].workload.corpus == str(tmp_path / "books")
    assert (job.inputs["b"].file, job.inputs["c"].workload) == (str(tmp_path / "b.txt"), NexmarkSpec())
