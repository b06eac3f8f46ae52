"""Executes the user's commands as argument vectors, with a time limit and without the run's secrets.

A command inherits neither the run's marks nor its settings: a worker that it starts again belongs to its cluster, and
must outlive the run.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import IO

from experiments.errors import BadInput, EnvironmentFailure
from experiments.external_cluster import HOST
from experiments.secrets import carries_secret
from infra.launch import INHERITED

# What tells clients of clusters where to look, and never a key: programs of the run get these, too.
WHERE = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "KUBECONFIG", "AWS_PROFILE", "AWS_REGION", "AWS_CONFIG_FILE")
# Waits for a line, then becomes the command. The arguments are passed on as they are; at the end of input, it ends.
HELD = ("/bin/sh", "-c", 'read -r go && exec "$@" </dev/null', "sh")
MOST_OUTPUT = 2**20  # bytes
LONGEST_COMPLAINT = 200  # characters
MOMENT = re.compile(r"([0-9]{9,11})(?:\.([0-9]{1,9}))?")
CLOCKS_APART_NS = 2_000_000_000  # the program that prints a moment may have another clock, or only whole seconds


@dataclass(frozen=True)
class Ended:
    """A command that has ended by itself: its exit code, what it printed, when it began, and when its end was seen."""

    code: int
    output: str
    complaint: str
    began_ns: int
    ended_ns: int


class TookTooLong(EnvironmentFailure):
    """A command did not end within its time limit, and was ended."""


class RunningCommand:
    """A command that was started; `called` is its name in errors and in the log. The caller waits for it or closes it.

    If it is `held`, its process exists but does nothing before `release`. If this process dies first, the command is
    never executed.
    """

    def __init__(self, called: str, command: Sequence[str], host: str = "", *, held: bool = False) -> None:
        self.called = called
        arguments = [argument.replace(HOST, host) if index else argument for index, argument in enumerate(command)]
        with ExitStack() as files:
            self._output = files.enter_context(tempfile.TemporaryFile())
            self._errors = files.enter_context(tempfile.TemporaryFile())
            self._files = files.pop_all()
        self.began_ns = time.time_ns()
        try:
            self._process = subprocess.Popen(
                [*(HELD if held else ()), *arguments],
                cwd="/",
                env=surroundings(),
                stdin=subprocess.PIPE if held else subprocess.DEVNULL,
                stdout=self._output,  # not a pipe: a process that it leaves behind would hold that open
                stderr=self._errors,
                start_new_session=True,
            )
        except OSError as error:
            self._files.close()
            raise EnvironmentFailure(f"{called} cannot be executed ({error.strerror})", "look at the program") from None

    @property
    def pid(self) -> int:
        """The id of its process, which leads a session and a process group."""
        return self._process.pid

    def release(self) -> None:
        """Have a command that is held begin."""
        self.began_ns = time.time_ns()
        if self._process.stdin is not None:
            with suppress(BrokenPipeError), self._process.stdin as gate:  # broken: it was killed; its exit code tells
                gate.write(b"\n")

    def wait(self, limit_s: float) -> Ended:
        """What came of it; raises `TookTooLong`, and ends it, if it takes longer than `limit_s`."""
        try:
            code = self._process.wait(max(limit_s, 0.0))
            ended_ns = time.time_ns()
            return Ended(code, _text(self._output), _text(self._errors), self.began_ns, ended_ns)
        except subprocess.TimeoutExpired:
            cause = f"{self.called} takes more than {limit_s:g} s"
            raise TookTooLong(cause, "make it faster, or raise limit_s of the cluster's description") from None
        finally:
            self.close()

    def close(self) -> None:
        """End the command and its child processes, if it has not ended by itself."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._files.close()


def surroundings() -> dict[str, str]:
    """The environment of a command: where programs, the user's files and the cluster are."""
    return {name: os.environ[name] for name in (*INHERITED, *WHERE) if name in os.environ}


def require_program(field: str, command: Sequence[str]) -> None:
    """Raise `BadInput` about a command whose program is not there, or may not be executed."""
    program = command[0]
    if os.sep not in program:
        if shutil.which(program) is None:
            raise BadInput(field, program, "a program that is in PATH, or the path of one")
    elif not os.path.isfile(program):
        raise BadInput(field, program, "a program that exists")
    elif not os.access(program, os.X_OK):
        raise BadInput(field, program, f"a program that may be executed (chmod +x {program})")


def succeeded(called: str, ended: Ended) -> Ended:
    """The command if it exited with 0; raises `EnvironmentFailure` with the last that it said if not."""
    if ended.code:
        raise EnvironmentFailure(f"{called} exited with {ended.code} ({complaint(ended)})", "try it by hand")
    return ended


def complaint(ended: Ended) -> str:
    """The last line that a command wrote to standard error, unless that may hold a secret."""
    return quoted((ended.complaint.strip().splitlines() or ["without a word"])[-1])


def quoted(line: str) -> str:
    """A line that a command printed, unless the whole of it or a word in it may be a secret."""
    hidden = any(map(carries_secret, [line, *line.split()]))
    return "not shown: it may hold a secret" if hidden else line[:LONGEST_COMPLAINT]


def moment(called: str, ended: Ended, since_ns: int) -> int:
    """When a proof says that something happened [ns]; raises `EnvironmentFailure` for what is no proof.

    That is no moment (seconds since 1970, as `date +%s.%N` prints them), one before `since_ns`, and one to come.
    """
    told = MOMENT.fullmatch(ended.output.strip())
    if not told:
        found = "nothing" if not ended.output.strip() else "something else"
        cause = f"{called} proves nothing: it printed {found} where the moment belongs, in seconds since 1970"
        raise EnvironmentFailure(cause, "have it print `date +%s.%N` of when it happened")
    at_ns = int(told[1]) * 10**9 + int((told[2] or "0").ljust(9, "0"))
    if not since_ns - CLOCKS_APART_NS <= at_ns <= ended.ended_ns + CLOCKS_APART_NS:
        when = "is still to come" if at_ns > ended.ended_ns else "was before what it is to prove"
        cause = f"{called} proves nothing: the moment that it printed {when}"
        raise EnvironmentFailure(cause, "look at what it prints, and at the clock that it goes by")
    return at_ns


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(MOST_OUTPUT).decode("utf-8", "replace")
