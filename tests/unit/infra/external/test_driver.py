"""Driver external on a cluster of files: real commands strike and heal its hosts; no Spark, no broker."""

from __future__ import annotations

import errno
import json
import time
from pathlib import Path
from typing import Any

import pytest

from chaos.events import FaultEvent
from chaos.fault_plan import FaultPlan
from chaos.injector import Injector
from experiments import spec
from experiments.errors import BadInput, EnvironmentFailure
from experiments.fault_kinds import PLAIN, FaultKind
from experiments.spec import ClusterSpec
from experiments.waiting import Deadline
from infra import arrivals
from infra.cluster import HANDLE_FILE, Handle
from infra.external import driver as module
from infra.external import strike as strike_module
from infra.external import topics
from infra.external.borrowed import Borrowing
from infra.external.driver import ExternalDriver
from journal.reader import raw_entries
from journal.writer import Journal
from tests.unit.infra.external import clusters
from tests.unit.infra.external.clusters import COMMANDS
from tests.unit.marked_processes import wait_for

LEAD_NS = 700_000_000  # from arming to the window: more than the injector looks ahead


class NoBroker:
    """Stands in for the broker, which these tests are not about."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.removed: list[str] = []
        patch.setattr(module.logins, "require_broker", lambda *_: None)
        patch.setattr(topics, "remove", lambda handle: self.removed.append(handle.run_id))


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> NoBroker:
    return NoBroker(monkeypatch)


def spec_of(path: Path) -> ClusterSpec:
    return ClusterSpec(driver="external", workers=2, inventory=str(path))


def provisioned(folder: Path, **changes: Any) -> Handle:
    path = clusters.make(folder / "there", **changes)
    return ExternalDriver().provision(spec_of(path), "run-1", folder / "run" / "cluster")


def with_commands(**changes: list[str]) -> dict[str, Any]:
    return {"faults": {"kill": COMMANDS | changes}}


def called(folder: Path) -> list[str]:
    return (folder / "there" / "called").read_text(encoding="utf-8").split("\n")


def struck(folder: Path) -> set[str]:
    return {path.name for path in (folder / "there" / "down").iterdir()}


def test_a_run_takes_the_hosts_that_are_listed_and_starts_nothing(tmp_path: Path, broker: NoBroker) -> None:
    handle = provisioned(tmp_path)
    assert {host.name: host.address for host in handle.hosts.values()} == {
        "gateway": "127.0.0.1",
        "worker-1": "127.0.0.101",
        "worker-2": "127.0.0.102",
    }
    assert (handle.master, handle.broker) == ("yarn", "127.0.0.1:9")
    assert handle.checkpoints == str(tmp_path / "there" / "checkpoints" / "aftershock-run-1")
    assert Path(handle.checkpoints).is_dir()
    assert Handle.load(Path(handle.root)) == handle
    assert ExternalDriver().running(handle, "gateway") == set()
    assert set(called(tmp_path)) == {"list", ""}


def test_the_run_goes_by_the_description_as_it_was_when_it_began(tmp_path: Path, broker: NoBroker) -> None:
    handle = provisioned(tmp_path)
    (tmp_path / "there" / "cluster.json").write_text("{}", encoding="utf-8")
    assert ExternalDriver().prepare(handle, "worker-2", FaultKind.KILL).fire().holds


def test_a_strike_and_its_heal_are_proved_by_the_users_own_commands(tmp_path: Path, broker: NoBroker) -> None:
    driver, handle = ExternalDriver(), provisioned(tmp_path)
    before_ns = time.time_ns()
    strike = driver.prepare(handle, "worker-2", FaultKind.KILL)
    assert strike.refresh()
    strike.shoot(0)
    proof = strike.fire()
    assert (proof.done, proof.left) == ({"hosts struck": 1}, {"hosts without proof": 0})
    assert before_ns <= proof.fired_ns <= proof.proved_ns
    assert struck(tmp_path) == {"pod-2"}
    assert list(Borrowing(handle).struck()) == [("worker-2", FaultKind.KILL)]
    absorbed = driver.prepare(handle, "worker-2", FaultKind.KILL)
    assert not absorbed.refresh(), "it is down"
    absorbed.close()
    looks = called(tmp_path).count("alive pod-2")
    held_up = driver.prepare(handle, "worker-2", FaultKind.KILL)
    wait_for(lambda: called(tmp_path).count("alive pod-2") > looks)
    healed = driver.heal(handle, "worker-2", FaultKind.KILL)
    assert held_up.refresh(), "it was healed since that strike was prepared"
    held_up.close()
    assert (healed.done, healed.left) == ({"hosts healed": 1}, {"hosts not back": 0})
    assert struck(tmp_path) == set()
    assert list(Borrowing(handle).struck()) == []
    again = driver.heal(handle, "worker-2", FaultKind.KILL)
    assert (again.done, again.left) == ({"hosts healed": 0}, {"hosts not back": 0})
    assert called(tmp_path).count("start pod-2") == 1


def test_the_log_tells_of_each_command_and_how_late_it_was(tmp_path: Path, broker: NoBroker) -> None:
    handle = provisioned(tmp_path)
    strike = ExternalDriver().prepare(handle, "worker-1", FaultKind.KILL)
    strike.refresh()
    strike.shoot(time.time_ns() - 250_000_000)
    strike.fire()
    log = (handle.directory("gateway") / "logs" / "commands.log").read_text(encoding="utf-8").splitlines()
    assert [line.split(" ", 1)[1].partition(":")[0] for line in log] == [
        "prove_healed (kill) of worker-1 (pod-1)",
        "strike (kill) of worker-1 (pod-1)",
        "prove (kill) of worker-1 (pod-1)",
    ]
    late_ms = float(log[1].partition(": ")[2].partition(" ms late")[0])
    assert 250 <= late_ms < 10_000
    assert "ms late" not in log[0] + log[2]


@pytest.fixture
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof that does not hold at once is not awaited."""
    monkeypatch.setattr(strike_module, "Deadline", lambda limit_s: Deadline(0))


@pytest.mark.usefixtures("no_patience")
def test_a_strike_without_proof_is_contradicted(tmp_path: Path, broker: NoBroker) -> None:
    handle = provisioned(tmp_path, **with_commands(prove=["false", "{host}"]))
    proof = ExternalDriver().prepare(handle, "worker-1", FaultKind.KILL).fire()
    assert (proof.holds, proof.left) == (False, {"hosts without proof": 1})


@pytest.mark.usefixtures("no_patience")
def test_a_host_that_does_not_come_back_stays_noted(tmp_path: Path, broker: NoBroker) -> None:
    handle = provisioned(tmp_path, **with_commands(heal=["true", "{host}"]))
    driver = ExternalDriver()
    driver.prepare(handle, "worker-1", FaultKind.KILL).fire()
    healed = driver.heal(handle, "worker-1", FaultKind.KILL)
    assert (healed.holds, healed.left) == (False, {"hosts not back": 1})
    assert list(Borrowing(handle).struck()) == [("worker-1", FaultKind.KILL)]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"strike": ["false", "{host}"]}, r"^strike \(kill\) of worker-1 \(pod-1\) exited with 1 \(without a word\)"),
        ({"prove": ["true", "{host}"]}, r"^prove \(kill\) of worker-1 \(pod-1\) proves nothing: it printed nothing"),
        (
            {"prove": ["echo", "{host}"]},
            r"^prove .* proves nothing: it printed something else where the moment belongs",
        ),
        ({"prove": ["echo", "1000000000", "{host}"]}, r"^prove .* proves nothing: it printed something else"),
        ({"prove_healed": ["true", "{host}"]}, r"^prove_healed .* proves nothing: it printed nothing"),
    ],
)
def test_what_is_wrong_with_a_command_is_told_in_one_line(
    changes: dict[str, list[str]], problem: str, tmp_path: Path, broker: NoBroker
) -> None:
    handle = provisioned(tmp_path, **with_commands(**changes))
    strike = ExternalDriver().prepare(handle, "worker-1", FaultKind.KILL)
    with pytest.raises(EnvironmentFailure, match=problem):
        strike.refresh() and strike.fire()
    strike.close()


def test_a_strike_that_takes_too_long_is_ended(tmp_path: Path, broker: NoBroker) -> None:
    handle = provisioned(tmp_path, **with_commands(strike=["sh", "-c", "sleep 60", "{host}"]))
    known = Borrowing(handle).known
    hurried = known.model_copy(update={"cluster": known.cluster.model_copy(update={"limit_s": 0.01})})
    hurried.save(Path(handle.root))
    strike = ExternalDriver().prepare(handle, "worker-1", FaultKind.KILL)
    with pytest.raises(
        EnvironmentFailure, match=r"^strike \(kill\) of worker-1 \(pod-1\) takes more than 0.01 s; make"
    ):
        strike.fire()
    strike.close()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"list_hosts": ["./nothing"]}, r"^list_hosts: .*nothing' is not usable; allowed: a program that exists$"),
        ({"list_hosts": ["./cluster.json"]}, r"^list_hosts: .* a program that may be executed"),
        ({"list_hosts": ["false"]}, r"^list_hosts exited with 1 \(without a word\); try it by hand$"),
        (
            {"list_hosts": ["echo", "no host"]},
            r"^list_hosts printed no host in line 1 \(no host\); have it print a line",
        ),
        ({"list_hosts": ["true"]}, r"^cluster.workers: 2 is not usable; allowed: at most 0, as many hosts as list_"),
        ({"list_hosts": ["sleep", "60"], "limit_s": 0.1}, r"^list_hosts takes more than 0.1 s"),
        (
            {"faults": {"kill": COMMANDS | {"heal": ["a", "{host}"]}}},
            r"^faults.kill.heal: 'a' is not usable; allowed: a",
        ),
        ({"checkpoints": "/no/such/folder"}, r"^checkpoints: '/no/such/folder' is not usable; allowed: a folder that"),
        ({"master": "spark://127.0.0.1:9"}, r"^nothing listens at spark://127.0.0.1:9; start the cluster's master"),
        ({"spark_conf": "/no/such/file"}, r"^spark_conf: '/no/such/file' is not usable; allowed: a file that can be r"),
        ({"broker_login": "host"}, r"^broker_login: .* is not usable; allowed: a file of the lines sasl.mechanism=.*"),
    ],
)
def test_what_is_wrong_is_told_before_a_run_begins(
    changes: dict[str, Any], problem: str, tmp_path: Path, broker: NoBroker
) -> None:
    path = clusters.make(tmp_path / "there", **changes)
    with pytest.raises((BadInput, EnvironmentFailure), match=problem) as failure:
        ExternalDriver().check(spec_of(path))
    assert "\n" not in str(failure.value)
    assert struck(tmp_path) == set()


def test_a_broker_that_does_not_answer_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BROKER_LIMIT_S", 0.1)
    with pytest.raises(
        EnvironmentFailure, match=r"^no broker answers at 127.0.0.1:9; start it, or correct its address"
    ):
        ExternalDriver().check(spec_of(clusters.make(tmp_path / "there")))


def test_a_kind_without_commands_is_refused(tmp_path: Path) -> None:
    path = clusters.make(tmp_path / "there")
    driver, cluster = ExternalDriver(), spec_of(path)
    assert driver.refusal(cluster, FaultKind.KILL, PLAIN) is None
    assert driver.refusal(cluster, FaultKind.DRIVER_KILL, PLAIN) is None, "the query driver is on this machine"
    assert driver.refusal(cluster, FaultKind.PAUSE, PLAIN) == f"kill, for which {path} has commands"
    assert str(driver.refusal(cluster, FaultKind.DISK_FULL, PLAIN)).endswith(
        "with driver external, whose hosts are struck by commands that are told nothing but a name"
    )


def test_only_workers_of_the_cluster_are_aimed_at(tmp_path: Path, broker: NoBroker) -> None:
    driver, handle = ExternalDriver(), provisioned(tmp_path)
    for host in ("gateway", "pod-1", "worker-3"):
        for act in (driver.prepare, driver.heal):
            with pytest.raises(BadInput, match=rf"^target: '{host}' .* a worker of run run-1: worker-1, worker-2$"):
                act(handle, host, FaultKind.KILL)
    assert set(called(tmp_path)) == {"list", ""}


def test_the_end_of_a_run_brings_back_what_it_struck_and_leaves_nothing(tmp_path: Path, broker: NoBroker) -> None:
    """As after a run whose injector died: the host is not healed."""
    driver, handle = ExternalDriver(), provisioned(tmp_path)
    (Path(handle.checkpoints) / "offsets").mkdir()
    driver.prepare(handle, "worker-1", FaultKind.KILL).fire()
    driver.destroy(handle)
    assert struck(tmp_path) == set()
    assert broker.removed == ["run-1"]
    assert list((tmp_path / "there" / "checkpoints").iterdir()) == []
    driver.destroy(handle)
    assert called(tmp_path).count("start pod-1") == 1


def test_checkpoints_that_are_there_already_are_refused_and_left_alone(tmp_path: Path, broker: NoBroker) -> None:
    path = clusters.make(tmp_path / "there")
    theirs = tmp_path / "there" / "checkpoints" / "aftershock-run-1"
    theirs.mkdir()
    (theirs / "offsets").write_text("somebody's", encoding="utf-8")
    root = tmp_path / "run" / "cluster"
    with pytest.raises(EnvironmentFailure, match=rf"^the folder {theirs} cannot be made .* \(File exists\); look"):
        ExternalDriver().provision(spec_of(path), "run-1", root)
    assert not (root / HANDLE_FILE).exists(), "by it the teardown would remove them"
    assert (theirs / "offsets").read_text(encoding="utf-8") == "somebody's"


def test_a_run_without_a_handle_leaves_no_checkpoints(
    tmp_path: Path, broker: NoBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(handle: Handle) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Handle, "save", no_room)
    with pytest.raises(OSError, match="No space left"):
        provisioned(tmp_path)
    assert list((tmp_path / "there" / "checkpoints").iterdir()) == []


def test_a_host_that_cannot_be_brought_back_is_told_and_the_rest_is_removed(tmp_path: Path, broker: NoBroker) -> None:
    handle = provisioned(tmp_path, **with_commands(heal=["false", "{host}"]))
    ExternalDriver().prepare(handle, "worker-1", FaultKind.KILL).fire()
    with pytest.raises(
        EnvironmentFailure, match=r"^heal \(kill\) of worker-1 \(pod-1\) exited with 1 .*; mend that and"
    ):
        ExternalDriver().destroy(handle)
    assert broker.removed == ["run-1"]
    assert not Path(handle.checkpoints).exists()


def test_logins_are_copied_where_only_the_runs_user_reads(tmp_path: Path, broker: NoBroker) -> None:
    lines = ["security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", "sasl.username=me", "sasl.password=hunter2"]
    (tmp_path / "login").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "spark").write_text("spark.authenticate true", encoding="utf-8")
    handle = provisioned(tmp_path, broker_login=str(tmp_path / "login"), spark_conf=str(tmp_path / "spark"))
    assert handle.kafka.for_librdkafka()["sasl.password"] == "hunter2"
    files = list((Path(handle.root) / "secrets").iterdir())
    assert {path.name: path.stat().st_mode & 0o777 for path in files} == {
        "spark-defaults.conf": 0o600,
        "kafka.properties": 0o600,
        "store.key": 0o600,
    }
    texts = [path.read_text() for path in Path(handle.root).rglob("*") if path.is_file() and path not in files]
    assert not any("hunter2" in text for text in texts)


def test_listed_domains_become_the_faults_unless_the_experiment_names_them(tmp_path: Path, broker: NoBroker) -> None:
    from aftershock.run.listed_domains import with_listed_domains

    path = clusters.make(tmp_path / "there")
    document = {"cluster": {"driver": "external", "workers": 2, "inventory": str(path)}}
    listed = {"worker-1": ("zone-1",), "worker-2": ("zone-2",)}
    assert with_listed_domains(spec.validate(document)).faults.hosts == listed
    named = spec.validate(document | {"faults": {"hosts": {"worker-1": ["zone-1", "rack-9"], "worker-2": []}}})
    assert with_listed_domains(named) is named
    wrong = spec.validate(document | {"faults": {"hosts": {"worker-2": ["zone-1"]}}})
    with pytest.raises(
        BadInput, match=r"^faults.hosts.worker-2: \['zone-1'\] .* zone-2, where list_hosts has this host"
    ):
        with_listed_domains(wrong)
    local = spec.load("wordcount")
    assert with_listed_domains(local) is local


def test_the_injector_journals_strike_heal_and_return(tmp_path: Path, broker: NoBroker) -> None:
    handle = provisioned(tmp_path)
    path = tmp_path / "injector.jsonl"
    start_ns = time.time_ns() + LEAD_NS
    fault = {"at": 0.4, "kind": "kill", "targets": ["worker-1"], "cause": "test", "heal_after": 0.2}
    plan = FaultPlan(start_ns, start_ns + 60 * 10**9, (FaultEvent.from_json(fault),))
    Injector(ExternalDriver(), handle, Journal(path), plan).run()
    told = {entry["event"]: entry for entry in raw_entries(path)}
    assert [*told] == ["armed", "striking", "injected", "healed", "joined", "disarmed"]
    assert told["injected"]["left"] == {"hosts without proof": 0}
    assert told["injected"]["fired_ns"] >= told["injected"]["planned_ns"] == start_ns + 400_000_000
    assert called(tmp_path)[-6:-1] == ["alive pod-1", "kill pod-1", "dead pod-1", "start pod-1", "alive pod-1"]


def test_a_host_has_arrived_once_its_user_has_proved_that(tmp_path: Path, broker: NoBroker) -> None:
    driver, handle = ExternalDriver(), provisioned(tmp_path)
    driver.prepare(handle, "worker-1", FaultKind.KILL).fire()
    arrived = arrivals.arrival(handle, "worker-1", FaultKind.KILL)
    assert arrived is not None
    assert not arrived()
    driver.heal(handle, "worker-1", FaultKind.KILL)
    assert arrived()
    assert arrivals.arrival(handle, "gateway", FaultKind.DRIVER_KILL) is None


def test_a_damaged_note_of_the_cluster_is_one_line(tmp_path: Path, broker: NoBroker) -> None:
    handle = provisioned(tmp_path)
    (Path(handle.root) / "external" / "borrowed.json").write_text(json.dumps({"names": 1}), encoding="utf-8")
    with pytest.raises(
        EnvironmentFailure, match=r"borrowed.json is damaged; bring back by hand what the run has struck$"
    ):
        ExternalDriver().prepare(handle, "worker-1", FaultKind.KILL)


def test_hosts_that_are_listed_in_other_domains_since_the_run_began_are_refused(
    tmp_path: Path, broker: NoBroker
) -> None:
    from aftershock.run.listed_domains import require_unchanged, with_listed_domains

    path = clusters.make(tmp_path / "there", hosts=3)
    document = {"cluster": {"driver": "external", "workers": 2, "inventory": str(path)}}
    experiment = with_listed_domains(spec.validate(document))
    driver = ExternalDriver()
    require_unchanged(experiment, driver.provision(experiment.cluster, "run-1", tmp_path / "first"))
    (tmp_path / "there" / "up" / "pod-1").unlink()
    handle = driver.provision(experiment.cluster, "run-2", tmp_path / "second")
    with pytest.raises(EnvironmentFailure, match=r"^worker-1 \(pod-2\) is listed in domain zone-2, and was in another"):
        require_unchanged(experiment, handle)
