"""What is left when an injector dies amid a strike, or a fault takes the place of another: no host stays struck."""

from __future__ import annotations

import errno
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from chaos.events import FaultEvent
from chaos.fault_plan import FaultPlan
from chaos.injector import Injector
from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import FaultKind
from infra.cluster import Handle
from infra.external import notes
from infra.external.borrowed import Borrowing
from infra.external.commands import RunningCommand
from infra.external.driver import ExternalDriver
from infra.launch import REPOSITORY
from infra.processes import start_of
from journal.reader import raw_entries
from journal.writer import Journal
from tests.unit.infra.external.clusters import COMMANDS, program
from tests.unit.infra.external.test_driver import LEAD_NS, NoBroker, broker, called, provisioned, struck, with_commands
from tests.unit.marked_processes import wait_for

__all__ = ["broker"]
INJECTOR = """
import sys, time
from pathlib import Path
from experiments.fault_kinds import FaultKind
from infra.cluster import Handle
from infra.external.driver import ExternalDriver
handle = Handle.load(Path(sys.argv[1]))
ExternalDriver().prepare(handle, "worker-1", FaultKind.KILL).shoot(0)
time.sleep(600)
"""
SLOW = """#!/bin/sh
# Strikes once there is a file `go`: before its own end, or after that.
cd "$(dirname "$0")"
strike() { while [ ! -e go ]; do sleep 0.02; done; mv "up/$2" down; }
touch began
if [ "$1" = afterwards ]; then strike "$@" >/dev/null 2>&1 & else strike "$@"; fi
"""
# Hosts that can also be frozen, which no new life of theirs ends: as a cordon.
FREEZER = """#!/bin/sh
cd "$(dirname "$0")"
case "$1" in
freeze) touch "frozen-$2" ;;
is-frozen) [ -e "frozen-$2" ] && date +%s.%N ;;
thaw) rm -f "frozen-$2" ;;
is-well) [ -e "up/$2" ] && [ ! -e "frozen-$2" ] && date +%s.%N ;;
esac
"""
FROZEN = {
    "strike": ["./freezer", "freeze", "{host}"],
    "prove": ["./freezer", "is-frozen", "{host}"],
    "heal": ["./freezer", "thaw", "{host}"],
    "prove_healed": ["./freezer", "is-well", "{host}"],
}


def slow_strikes(folder: Path, when: str) -> Handle:
    (folder / "there").mkdir()
    program(folder / "there" / "slow", SLOW)
    return provisioned(folder, **with_commands(strike=["./slow", when, "{host}"]))


def noted(handle: Handle) -> list[tuple[str, FaultKind]]:
    return list(Borrowing(handle).struck())


@pytest.mark.parametrize("when", ["meanwhile", "afterwards"])
def test_a_strike_that_outlives_its_injector_is_awaited_before_the_host_is_healed(
    when: str, tmp_path: Path, broker: NoBroker
) -> None:
    handle, there = slow_strikes(tmp_path, when), tmp_path / "there"
    injector = subprocess.Popen([sys.executable, "-c", INJECTOR, handle.root], cwd=REPOSITORY)
    try:
        wait_for((there / "began").exists)
    finally:
        injector.kill()
        injector.wait()
    assert noted(handle) == [("worker-1", FaultKind.KILL)]
    strikes_late = threading.Timer(0.5, (there / "go").touch)  # without the wait, the teardown is over by then
    strikes_late.start()
    ExternalDriver().destroy(handle)
    strikes_late.join()
    wait_for(lambda: called(tmp_path).count("start pod-1") == 1)
    assert struck(tmp_path) == set()
    assert noted(handle) == []


def test_a_strike_that_was_announced_and_never_begun_is_not_awaited(tmp_path: Path, broker: NoBroker) -> None:
    handle = provisioned(tmp_path)
    Borrowing(handle).note("worker-1", FaultKind.KILL).announce()
    ExternalDriver().destroy(handle)
    assert "dead pod-1" not in called(tmp_path)
    assert noted(handle) == []


@pytest.mark.parametrize("proved", [True, False])
def test_a_disk_without_room_keeps_no_host_from_its_heal(
    proved: bool, tmp_path: Path, broker: NoBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host is on a cluster of somebody else's, whose disks may be empty."""
    driver, handle = ExternalDriver(), provisioned(tmp_path)
    strike = driver.prepare(handle, "worker-1", FaultKind.KILL)
    strike.shoot(0)
    if proved:
        strike.fire()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    log = handle.directory("gateway") / "logs" / "commands.log"
    log.unlink(missing_ok=True)
    log.mkdir()  # nothing can be added to it, either
    monkeypatch.setattr(notes.credentials, "write_private", full)
    healed = driver.heal(handle, "worker-1", FaultKind.KILL)
    assert (healed.done, healed.left) == ({"hosts healed": 1}, {"hosts not back": 0})
    assert struck(tmp_path) == set()
    assert noted(handle) == []
    strike.close()
    with pytest.raises(OSError, match="No space left"):
        driver.prepare(handle, "worker-1", FaultKind.KILL).shoot(0)
    assert struck(tmp_path) == set(), "what cannot be noted is not struck: nobody would know that it has to be healed"


def test_a_command_that_never_ends_is_ended_with_what_it_started(tmp_path: Path) -> None:
    slow = program(tmp_path / "slow", f"#!/bin/sh\nsleep 600 &\necho $! >{tmp_path}/pid\nwait\n")
    command, note = RunningCommand("strike", [str(slow)], held=True), notes.Note(tmp_path / "note")
    note.strikes(command.pid)
    command.release()
    wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip() != "")
    note.end_command(0.0)
    wait_for(lambda: start_of(int((tmp_path / "pid").read_text())) is None)  # it is killed, and dies a moment later
    wait_for(lambda: start_of(command.pid) is None)
    command.close()


def test_another_process_with_the_id_of_a_command_is_left_alone(tmp_path: Path) -> None:
    other = subprocess.Popen(["sleep", "600"], start_new_session=True)
    note = notes.Note(tmp_path / "note")
    note.strikes(other.pid)
    note.path.write_text(note.path.read_text().replace(str(start_of(other.pid)), "1"))
    note.end_command(0.0)
    assert other.poll() is None
    other.kill()
    other.wait()


def test_a_command_that_is_held_never_begins_if_its_starter_dies(tmp_path: Path) -> None:
    strike = program(tmp_path / "strike", f"#!/bin/sh\ntouch {tmp_path}/struck\n")
    orphan = RunningCommand("strike", [str(strike)], held=True)
    assert orphan._process.stdin is not None
    orphan._process.stdin.close()  # as the kernel does of a process that has died
    assert orphan.wait(20.0).code != 0
    assert not (tmp_path / "struck").exists()
    released = RunningCommand("strike", [str(strike)], held=True)
    released.release()
    assert released.wait(20.0).code == 0
    assert (tmp_path / "struck").exists()


def test_a_note_that_cannot_be_read_is_a_strike_of_which_nothing_is_known(tmp_path: Path) -> None:
    note = notes.Note(tmp_path / "note")
    assert (note.exists, note.since_ns) == (False, notes.NOT_STRUCK)
    note.path.touch()
    assert (note.exists, note.since_ns, note.began_ns) == (True, None, 0)
    note.end_command(0.0)


def healed_at(folder: Path, printed_ns: int, struck_ns: int) -> int:
    """When a host was well again by a proof that prints that moment, of a strike that began and was proved then."""
    handle = provisioned(folder, **with_commands(prove_healed=["./well", "{host}"]))
    program(folder / "there" / "well", f"#!/bin/sh\necho {printed_ns / 1e9:.6f}\n")
    driver, note = ExternalDriver(), Borrowing(handle).note("worker-1", FaultKind.KILL)
    driver.prepare(handle, "worker-1", FaultKind.KILL).fire()
    note.path.write_text(f'{{"process": null, "began_ns": {struck_ns}, "since_ns": {struck_ns}}}')
    return driver.heal(handle, "worker-1", FaultKind.KILL).fired_ns


def test_a_host_that_came_back_by_itself_is_well_since_then(tmp_path: Path, broker: NoBroker) -> None:
    now_ns = time.time_ns() // 1000 * 1000
    (tmp_path / "there").mkdir()
    program(tmp_path / "there" / "well", "#!/bin/sh\n")
    assert abs(healed_at(tmp_path, now_ns - 30 * 10**9, now_ns - 60 * 10**9) - (now_ns - 30 * 10**9)) < 10_000


def test_a_host_is_not_healed_since_before_it_was_struck(tmp_path: Path, broker: NoBroker) -> None:
    now_ns = time.time_ns()
    (tmp_path / "there").mkdir()
    program(tmp_path / "there" / "well", "#!/bin/sh\n")
    with pytest.raises(EnvironmentFailure, match="was before what it is to prove"):
        healed_at(tmp_path, now_ns - 90 * 10**9, now_ns - 60 * 10**9)


def test_a_fault_is_healed_with_the_weaker_one_whose_place_it_took(tmp_path: Path, broker: NoBroker) -> None:
    there = tmp_path / "there"
    there.mkdir()
    program(there / "freezer", FREEZER)
    handle = provisioned(tmp_path, faults={"kill": COMMANDS, "pause": FROZEN}, limit_s=60)
    path, start_ns = tmp_path / "injector.jsonl", time.time_ns() + LEAD_NS
    faults = [
        {"at": 0.4, "kind": "pause", "targets": ["worker-1"], "cause": "test", "heal_after": 2.5},
        {"at": 1.8, "kind": "kill", "targets": ["worker-1"], "cause": "test", "heal_after": 0.2},
    ]
    plan = FaultPlan(start_ns, start_ns + 60 * 10**9, tuple(map(FaultEvent.from_json, faults)))
    Injector(ExternalDriver(), handle, Journal(path), plan).run()
    entries = list(raw_entries(path))
    (healed,) = [entry for entry in entries if entry["event"] == "healed"]
    assert (healed["kind"], healed["left"]) == ("kill", {"hosts not back": 0})
    assert [entry["kind"] for entry in entries if entry["event"] == "ended"] == ["pause"]
    assert not (there / "frozen-pod-1").exists()
    assert struck(tmp_path) == set()
    assert noted(handle) == []


def test_a_stronger_fault_is_not_healed_with_a_weaker_one(tmp_path: Path, broker: NoBroker) -> None:
    handle = provisioned(tmp_path, faults={"kill": COMMANDS, "pause": COMMANDS, "power-off": COMMANDS})
    borrowing = Borrowing(handle)
    for kind in (FaultKind.PAUSE, FaultKind.KILL):
        borrowing.note("worker-1", kind).announce()
    assert borrowing.struck() == [("worker-1", FaultKind.KILL), ("worker-1", FaultKind.PAUSE)]
    assert borrowing.outdone("worker-1", FaultKind.POWER_OFF) == [FaultKind.PAUSE]
    assert borrowing.outdone("worker-1", FaultKind.PAUSE) == []
    assert borrowing.outdone("worker-2", FaultKind.KILL) == []


def test_the_last_look_at_a_proof_ends_with_the_time_for_it(tmp_path: Path, broker: NoBroker) -> None:
    (tmp_path / "there").mkdir()
    looks = '#!/bin/sh\ncd "$(dirname "$0")"\n[ -e looked ] && exec sleep 600\ntouch looked\nexit 1\n'
    program(tmp_path / "there" / "look", looks)
    handle = provisioned(tmp_path, **with_commands(prove=["./look", "{host}"]), limit_s=2)
    proof = ExternalDriver().prepare(handle, "worker-1", FaultKind.KILL).fire()
    assert proof.left == {"hosts without proof": 1}


def test_the_injector_has_the_time_that_the_description_gives_to_its_heals(tmp_path: Path, broker: NoBroker) -> None:
    handle = provisioned(tmp_path, faults={"kill": COMMANDS, "pause": COMMANDS}, limit_s=900)
    assert ExternalDriver().healing_limit_s(handle) == 60 + (4 + 2 * 2) * 900
