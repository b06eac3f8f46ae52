"""A soak goes on where it stopped, and notices what a piece leaves behind."""

import json
import os
from collections import Counter, namedtuple
from contextlib import contextmanager
from dataclasses import asdict
from types import SimpleNamespace

import pandas as pd
import psutil
import pytest

from benchmarks.orchestration import belongings, soak
from benchmarks.orchestration.belongings import Usage
from benchmarks.orchestration.soak import MUST_PASS, Ledger, Piece, experiment, judged, keep, played
from experiments import spec
from infra.ssh.driver import SshDriver
from infra.strikes import partition
from tests.e2e.standalone_cluster import EXAMPLE
from tests.integration.infra import machines
from tests.unit.experiments.test_inventory import host
from tests.unit.results import synthetic
from tests.unit.ssh_keys import new_key

HELD = Usage(4, 20, 100, 800.0)
KINDS = {"kill": 3, "pause": 2}
DOCKERS = {kind: belongings.LISTINGS[kind] for kind in ("containers", "networks")}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home, and a machine whose other programs list nothing meanwhile."""
    monkeypatch.setattr(soak, "SETTLING_S", 0.0)
    absent = dict.fromkeys(DOCKERS, (["no-such-tool"],))
    monkeypatch.setattr(belongings, "LISTINGS", {"rules": (["echo", "-A INPUT"],), **absent})
    monkeypatch.setattr(belongings.namespaces, "labels", lambda: set())
    (tmp_path / belongings.TEMPORARY).mkdir()
    return tmp_path


@pytest.fixture
def play(home, monkeypatch):
    """Play a piece that does this meanwhile; its run is judged to be well."""
    monkeypatch.setattr(soak, "judged", lambda run: (KINDS, []))
    return lambda meanwhile: played("local", 1, "s", home, meanwhile, lambda: HELD)


def piece(driver="local", seed=1, serve="s", wrong="", **held):
    return Piece(driver, seed, serve, KINDS, HELD._asdict() | held, wrong)


def test_the_driver_with_the_fewest_pieces_comes_next_under_another_seed(tmp_path):
    ledger = Ledger(tmp_path / "soak.jsonl")
    for each in (piece(), piece("netns"), piece(seed=2, wrong="files left: x")):
        ledger.add(each)
    assert ledger.next(["local", "netns"]) == ("netns", 2)
    ledger.add(piece("netns", 2))
    assert ledger.next(["local", "netns"]) == ("local", 3)
    assert ledger.faults == 20


def test_another_start_goes_on_behind_the_last_piece(tmp_path):
    path = tmp_path / "soak.jsonl"
    Ledger(path).add(piece())
    with path.open("a") as file:
        file.write(json.dumps(asdict(piece(seed=2)))[:-9])  # as a machine leaves it that goes down
    again = Ledger(path)
    assert (again.faults, again.next(["local"])) == (5, ("local", 2))
    again.add(piece(seed=2))
    assert Ledger(path).lines == [piece(), piece(seed=2)]


def test_a_piece_that_leaves_nothing_is_well_and_says_what_the_server_holds(play):
    assert play(lambda run_id: run_id) == piece()


@pytest.mark.parametrize("folder", ["live", belongings.TEMPORARY])
def test_a_file_that_is_left_over_is_named(play, home, folder):
    def leaves(run_id):
        (home / folder).mkdir(exist_ok=True)
        (home / folder / run_id).touch()

    assert play(leaves).wrong == f"files left: {home / folder / 'soak-local-1'}"


def test_the_lock_that_the_first_run_makes_for_all_is_not_left_over(play, home):
    assert play(lambda run_id: (home / belongings.TEMPORARY / belongings.PROVISION_LOCK.name).touch()).wrong == ""


def test_a_process_of_this_home_that_is_left_over_is_named_and_one_of_another_is_not(play, home, monkeypatch):
    marked = namedtuple("Marked", "pid uid mark root")
    found = []
    monkeypatch.setattr(belongings.processes, "owners", lambda: found)

    def leaves(run_id):
        found.append(marked(7, 0, "token/worker-1", f"{home}/live/x/cluster"))
        found.append(marked(8, 0, "token/worker-1", f"{home}-other/live/x/cluster"))

    assert play(leaves).wrong == "processes left: 7 token/worker-1"


@pytest.mark.parametrize("kind", ["namespaces", "interfaces", "mounts", "rules", "containers", "networks"])
def test_whatever_else_is_left_over_is_named(play, home, monkeypatch, kind):
    def leaves(run_id):
        there = belongings.on_the_machine(home)
        monkeypatch.setattr(belongings, "on_the_machine", lambda _: {**there, kind: there[kind] | {"x"}})

    assert play(leaves).wrong == f"{kind} left: x"


@pytest.mark.parametrize(("answers", "told"), [(True, "containers left: c1; networks left: n1"), (False, "")])
def test_what_is_left_in_docker_is_named_if_its_daemon_answers(play, tmp_path, monkeypatch, answers, told):
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    monkeypatch.setattr(belongings, "LISTINGS", DOCKERS)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)

    def leaves(run_id):
        answer = 'case "$*" in ps*) echo c1;; "network ls --filter type=custom"*) echo n1;; esac'
        program.write_text(f"#!/bin/sh\n{answer if answers else 'echo no daemon >&2; exit 1'}\n")

    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert play(leaves).wrong == told


def test_a_run_that_is_not_there_is_wrong_and_has_no_faults(play):
    def fails(run_id):
        raise FileNotFoundError(f"no run {run_id}")

    found = play(fails)
    assert (found.faults, found.wrong) == (0, "FileNotFoundError: no run soak-local-1")


def test_the_run_of_a_piece_is_kept_under_a_name_that_no_later_piece_has(home, tmp_path):
    synthetic.make_run(home / "runs", run_id="soak-local-1")
    for serve in ("s1", "s2"):
        keep(home, piece(serve=serve), tmp_path / "soak.wrong")
        keep(home, piece(seed=2, serve=serve), tmp_path / "soak.wrong")  # it ended before it had a folder
    found = {each.name: (each / "tables").is_dir() for each in (tmp_path / "soak.wrong").iterdir()}
    assert found == {"soak-local-1-s1": True, "soak-local-1-s2": True}


def test_a_good_run_is_well_and_one_that_loses_results_or_was_not_judged_is_not(tmp_path):
    good, bad = synthetic.make_run(tmp_path), synthetic.make_run(tmp_path / "bad", kills=())
    row = {"table": "faults", "observed": None, "expected": None, "detail": None}
    verdicts = pd.DataFrame([row | {"check": check, "verdict": "pass"} for check in MUST_PASS])
    synthetic.write_table(good, "verdicts", verdicts)
    assert judged(good) == ({"kill": len(synthetic.KILLS_S)}, [])
    lost = verdicts.assign(verdict=verdicts["verdict"].where(verdicts["check"] != "quality.nothing_lost", "fail"))
    synthetic.write_table(bad, "verdicts", lost[lost["check"] != "faults.proved"])
    assert judged(bad) == ({}, ["faults.proved absent", "quality.nothing_lost fail", "no fault was injected"])


GROWTH = {"memory_mb": 30.0, "descriptors": 8, "threads": 2, "processes": 1}


@pytest.mark.parametrize(("name", "each_piece"), GROWTH.items())
def test_what_a_server_holds_more_and_more_of_is_told(tmp_path, name, each_piece):
    ledger = Ledger(tmp_path / "soak.jsonl")
    before = getattr(HELD, name)
    for number in range(15):
        ledger.add(piece(seed=number, **{name: before + number * each_piece}))
    assert [told.split()[1] for told in ledger.growth()] == [name]
    steady = Ledger(tmp_path / "steady.jsonl")
    for number in range(15):
        steady.add(piece(seed=number, serve=f"s{number // 5}", **{name: before + number // 5 * each_piece}))
    assert steady.growth() == [], "each start of the server counts by itself"


@pytest.mark.parametrize(("pieces", "told"), [(4, "4 pieces"), (1, "1 piece"), (0, "0 pieces")])
def test_with_fewer_than_five_pieces_of_one_server_nothing_is_known_about_growth(tmp_path, capsys, pieces, told):
    ledger = Ledger(tmp_path / "soak.jsonl")
    for number in range(pieces):
        ledger.add(piece(seed=number, memory_mb=1000.0 * (number + 1)))
    if pieces:
        ledger.add(piece(seed=9, serve="another"))
    assert (ledger.growth(), soak.report(ledger)) == ([], False)
    assert capsys.readouterr().out.endswith(f"\ngrowth not evaluated: {told} of one server, at least 5 are needed\n")


def test_five_steady_pieces_of_one_server_are_well_if_each_of_them_is(tmp_path, capsys):
    ledger = Ledger(tmp_path / "soak.jsonl")
    for number in range(5):
        ledger.add(piece(seed=number))
    assert soak.report(ledger)
    assert capsys.readouterr().out == f"{ledger.table()}\n"
    ledger.add(piece("netns", serve="another", wrong="files left: x"))
    assert not soak.report(ledger)


def test_what_grew_is_printed_and_is_not_well(tmp_path, capsys):
    ledger = Ledger(tmp_path / "soak.jsonl")
    for number in range(5):
        ledger.add(piece(seed=number, memory_mb=1000.0 * (number + 1)))
    assert not soak.report(ledger)
    assert capsys.readouterr().out.endswith("\ns: memory_mb grew from 2000 to 5000\n")


@pytest.mark.parametrize(
    ("driver", "refusal", "partitions"),
    [
        ("local", None, 0),
        ("netns", None, 2),
        ("netns", "nft: No such file or directory", 0),
        ("docker", None, 2),
        ("docker", "nft: No such file or directory", 1),  # the daemon takes a container off its network as a whole
    ],
)
def test_each_driver_has_an_experiment_with_the_faults_that_it_can_inject(driver, refusal, partitions, monkeypatch):
    monkeypatch.setattr(partition, "refusal", lambda: refusal)
    found = experiment(driver, 3, 60.0, None)
    kinds = Counter(process["kind"] for process in found["faults"]["processes"])
    assert kinds.keys() >= {"kill", "terminate", "pause", "broker-kill", "master-kill", "driver-kill"}
    assert kinds["partition"] == partitions
    assert (found["seed"], found["window_s"], found["cluster"]["driver"]) == (3, 60.0, driver)


def test_what_starts_again_comes_less_often_than_in_the_example_and_what_does_not_more_often():
    given = [each.rate for each in spec.load("soak-netns").faults.processes]
    found = experiment("netns", 1, 60.0, None)
    processes = found["faults"]["processes"]
    times = [(each["kind"], each["rate"] / rate) for each, rate in zip(processes, given, strict=True)]

    def come(often: float) -> set[str]:
        return {kind for kind, found in times if found == pytest.approx(often)}

    assert come(soak.OFTENER["netns"]) == {"pause", "slow", "partition", "disk-full"}
    assert come(soak.RARER) == {"kill", "power-off", "terminate", "broker-kill", "master-kill", "driver-kill"}
    assert (found["cluster"]["workers"], found["faults"]["max_down"]) == (soak.HOSTS, soak.MAX_DOWN)


def test_what_a_process_holds_is_counted_with_all_below_it():
    alone = belongings.usage(psutil.Process())
    assert min(alone) >= 1
    with psutil.Popen(["sleep", "60"]) as child:
        both = belongings.usage(psutil.Process())
        child.kill()
    assert (both.processes - alone.processes, both.threads > alone.threads) == (1, True)
    assert both.descriptors > alone.descriptors


def test_the_table_has_faults_by_driver_and_kind(tmp_path):
    ledger = Ledger(tmp_path / "soak.jsonl")
    for each in (piece(), piece("netns", wrong="x")):
        ledger.add(each)
    head, _, local, netns = ledger.table().splitlines()
    assert head == "| driver | pieces | faults | kill | pause | wrong |"
    assert (local, netns) == ("| local | 1 | 5 | 3 | 2 | 0 |", "| netns | 1 | 5 | 3 | 2 | 1 |")


@pytest.mark.parametrize("obstacle", [None, "no partition on worker-1"])
def test_machines_have_an_experiment_without_what_they_lack(obstacle, tmp_path, monkeypatch):
    """No switch for their power, and no disk to fill; and what the machines themselves say that they cannot do."""
    monkeypatch.setattr(SshDriver, "obstacle", lambda _, spec, kind, options: obstacle if kind == "partition" else None)
    new_key(tmp_path / "key")
    roles = {"gateway": "gateway"} | {f"m-{number}": "worker" for number in range(1, soak.HOSTS + 1)}
    hosts = {name: host(name, role=role) for name, role in roles.items()}
    path = machines.write_inventory(tmp_path, hosts)
    found = experiment("ssh", 3, 60.0, path)
    kinds = {process["kind"] for process in found["faults"]["processes"]}
    assert kinds >= {"kill", "terminate", "pause", "slow", "broker-kill", "master-kill", "driver-kill"}
    assert not kinds & {"power-off", "disk-full"}
    assert ("partition" in kinds) == (obstacle is None)
    assert found["cluster"]["inventory"] == str(path)


@pytest.mark.parametrize(
    ("driver", "inventory", "begun"),
    [("local", None, []), ("ssh", "m.yaml", []), ("external", "c.json", ["on", "off"])],
)
def test_the_existing_cluster_is_there_only_for_the_pieces_of_its_driver(driver, inventory, begun, home, monkeypatch):
    found = []

    @contextmanager
    def cluster(folder, workers):
        found.append("on")
        yield SimpleNamespace(description=folder / "c.json")
        found.append("off")

    monkeypatch.setattr(soak, "standalone_cluster", cluster)
    with soak._inventory(home, driver, home / "m.yaml") as path:
        assert (path and path.name, found) == (inventory, begun[:1])
    assert found == begun
    assert not list(home.glob("external-*"))


def test_an_existing_cluster_has_an_experiment_with_the_faults_for_which_the_example_has_commands():
    path = EXAMPLE / "cluster.json"
    found = experiment("external", 3, 60.0, path)
    assert {process["kind"] for process in found["faults"]["processes"]} == {
        "kill",
        "terminate",
        "pause",
        "driver-kill",
    }
    assert (found["cluster"]["driver"], found["cluster"]["inventory"]) == ("external", str(path))
