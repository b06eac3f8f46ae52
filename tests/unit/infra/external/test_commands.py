"""The user's commands: executed as they are, for a limited time, and taken at their word only if it is one."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from experiments.errors import BadInput, EnvironmentFailure
from infra.external import commands
from infra.external.commands import Ended, RunningCommand, moment, require_program, succeeded
from infra.processes import MARK
from tests.unit.infra.external.clusters import program
from tests.unit.marked_processes import wait_for

NOW_NS = 1_800_000_000 * 10**9


def ended(output: str = "", code: int = 0, complaint: str = "") -> Ended:
    return Ended(code, output, complaint, NOW_NS, NOW_NS)


def run(path: Path, *arguments: str, host: str = "pod-1", limit_s: float = 20.0) -> Ended:
    return RunningCommand("strike of pod-1", [str(path), *arguments], host).wait(limit_s)


def test_arguments_are_passed_on_as_they_are_and_no_shell_reads_them(tmp_path: Path) -> None:
    shown = program(tmp_path / "show", '#!/bin/sh\nprintf "%s\\n" "$@"\n')
    told = run(shown, "{host}", "spec.nodeName={host}", "$(id); rm -rf *", "a b")
    assert told.output.splitlines() == ["pod-1", "spec.nodeName=pod-1", "$(id); rm -rf *", "a b"]


def test_a_command_sees_nothing_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the run's mark, a worker that a command starts again would end with the run."""
    for name, value in ((MARK, "x0-0123456789abcdef/gateway/injector"), ("SPARK_CONF_DIR", "/secrets"), ("KEY", "k")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KUBECONFIG", "/home/me/kube")
    seen = run(program(tmp_path / "env", "#!/bin/sh\nexec env\n")).output
    assert "KUBECONFIG=/home/me/kube" in seen
    assert not any(name in seen for name in (MARK, "SPARK_CONF_DIR", "KEY="))


def test_a_command_that_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    slow = program(tmp_path / "slow", f"#!/bin/sh\nsleep 60 &\necho $! >{tmp_path}/pid\nwait\n")
    command = RunningCommand("prove of pod-1", [str(slow)])
    wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip() != "")
    with pytest.raises(
        EnvironmentFailure, match=r"^prove of pod-1 takes more than 0.01 s; make it faster, or raise lim"
    ):
        command.wait(0.01)
    child = int((tmp_path / "pid").read_text())
    wait_for(lambda: not Path(f"/proc/{child}").exists() or "zombie" in Path(f"/proc/{child}/status").read_text())


def test_a_process_that_a_command_leaves_behind_goes_on(tmp_path: Path) -> None:
    starts = program(tmp_path / "start", "#!/bin/sh\nsleep 60 &\necho $!\n")
    told = run(starts)
    child = int(told.output)
    assert told.code == 0
    os.kill(child, 0)
    os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize(
    ("text", "mode", "allowed"),
    [
        (None, 0, "a program that exists"),
        ("#!/bin/sh\n", 0o644, "a program that may be executed"),
    ],
)
def test_a_program_that_cannot_be_executed_is_told_ahead(
    text: str | None, mode: int, allowed: str, tmp_path: Path
) -> None:
    path = tmp_path / "host"
    if text is not None:
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
    with pytest.raises(BadInput, match=f"^faults.kill.strike: .*{allowed}"):
        require_program("faults.kill.strike", [str(path)])


def test_a_program_is_looked_for_in_path() -> None:
    require_program("list_hosts", ["sh"])
    with pytest.raises(BadInput, match=r"^list_hosts: 'no-such-program' .* in PATH, or the path of one"):
        require_program("list_hosts", ["no-such-program"])


def test_what_is_no_program_at_all_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure, match=r"^strike of pod-1 cannot be executed \(Exec format error\); look at"):
        run(program(tmp_path / "host", "\x7fnot one"))


def test_a_command_that_fails_is_quoted_unless_it_may_tell_a_secret() -> None:
    with pytest.raises(EnvironmentFailure, match=r"^strike exited with 3 \(no such pod\); try it by hand$"):
        succeeded("strike", ended(code=3, complaint="warning\nno such pod\n"))
    with pytest.raises(EnvironmentFailure, match=r"\(not shown: it may hold a secret\)"):
        succeeded("strike", ended(code=3, complaint="login failed: password=hunter2"))
    assert succeeded("strike", ended()).code == 0


def test_a_proof_tells_its_moment_to_the_nanosecond() -> None:
    assert moment("prove", ended("1800000000.000000007\n"), NOW_NS) == NOW_NS + 7
    assert moment("prove", ended("1799999999"), NOW_NS) == NOW_NS - 10**9


@pytest.mark.parametrize(
    ("output", "complaint"),
    [
        ("", "it printed nothing where the moment belongs"),
        ("dead", "it printed something else where the moment belongs"),
        ("1800000000 1800000001", "it printed something else"),
        ("2027-01-15T08:00:00Z", "it printed something else"),
        ("1799999997.9", "the moment that it printed was before what it is to prove"),
        ("1800000002.1", "the moment that it printed is still to come"),
    ],
)
def test_what_tells_no_moment_of_its_own_is_no_proof(output: str, complaint: str) -> None:
    with pytest.raises(EnvironmentFailure, match=rf"^prove proves nothing: {complaint}"):
        moment("prove", ended(output), NOW_NS)


def test_more_output_than_a_megabyte_is_not_read(tmp_path: Path) -> None:
    told = run(program(tmp_path / "flood", "#!/bin/sh\nhead -c 3000000 /dev/zero\n"))
    assert len(told.output) == commands.MOST_OUTPUT
