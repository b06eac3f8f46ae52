"""Runs the Ivy that ships with pyspark, which finds modules in the Maven registry and downloads them."""

from __future__ import annotations

import importlib.util
import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from experiments.errors import EnvironmentFailure
from infra.services.jvm import find_java

PROGRESS_EVERY_S = 5.0
SILENCE_LIMIT_S = 300.0  # Ivy, which has no time limit, prints a dot now and then while it downloads
CHUNK_BYTES = 65536
AGAIN = "check the network and run the command again"
FOUND = re.compile(r"\tfound [^#\s]+#(?P<name>[^;\s]+);(?P<version>\S+) in ")
# A registry that cannot be reached makes every module one that was "not found", which Ivy tells first.
UNREACHED = re.compile(r"access error|Host \S+ not found|Exception")
FAILED = re.compile(r"not found|FAILED")


@dataclass
class Told:
    """What Ivy printed: the version of each module that it found, by name, and why it failed, as far as it told."""

    versions: dict[str, str] = field(default_factory=dict)
    unreached: str = ""
    failed: str = ""

    @property
    def reason(self) -> str:
        """The first line that tells why the registry cannot be reached, otherwise the first that tells of a failure."""
        return self.unreached or self.failed


def resolve(modules: Path, spark_version: str, scratch: Path, *options: str) -> dict[str, str]:
    """Let Ivy find the modules that a file asks for; returns the version of each one found, by its name.

    Raises `EnvironmentFailure` with Ivy's own reason.
    """
    properties = {"ivy.default.ivy.user.dir": f"{scratch}/ivy", "spark.version": spark_version}
    command = [str(find_java().launcher), *(f"-D{name}={value}" for name, value in properties.items())]
    command += ["-jar", str(_program()), "-cache", f"{scratch}/ivy", "-ivy", str(modules), *options]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as ivy:
        try:
            told = _follow(_lines(ivy.stdout))
        except BaseException:
            ivy.kill()
            raise
    if ivy.returncode:
        free_mb = shutil.disk_usage(scratch).free // 10**6
        reason = told.reason or f"exit code {ivy.returncode}"
        raise EnvironmentFailure(f"Ivy could not resolve the jars ({reason}; {free_mb} MB free)", AGAIN)
    return told.versions


def say(text: str) -> None:
    """Tell the user how far the jars are."""
    print(f"jars: {text}", file=sys.stderr, flush=True)


def _program() -> Path:
    spec = importlib.util.find_spec("pyspark")
    found = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar")) if spec and spec.origin else []
    if not found:
        raise EnvironmentFailure("the Ivy jar of pyspark is missing", "delete .venv and run `make setup`")
    return found[-1]


def _lines(output: IO[bytes] | None) -> Iterator[str]:
    """What Ivy prints, line by line; raises `EnvironmentFailure` once it prints nothing for `SILENCE_LIMIT_S`."""
    begun = b""
    while output is not None:
        if not select.select([output], [], [], SILENCE_LIMIT_S)[0]:
            raise EnvironmentFailure(f"the download of the jars stood still for {SILENCE_LIMIT_S:g} s", AGAIN)
        if not (said := os.read(output.fileno(), CHUNK_BYTES)):
            yield begun.decode(errors="replace")
            return
        *lines, begun = (begun + said).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)


def _follow(lines: Iterable[str]) -> Told:
    """Read what Ivy prints, and print how far it is now and then."""
    told, fetched, said = Told(), 0, time.monotonic()
    for line in lines:
        fetched += "[SUCCESSFUL" in line
        if found := FOUND.match(line):
            told.versions[found["name"]] = found["version"]
        elif UNREACHED.search(line):
            told.unreached = told.unreached or " ".join(line.split())
        elif FAILED.search(line):
            told.failed = told.failed or " ".join(line.split())
        if time.monotonic() - said > PROGRESS_EVERY_S:
            said = time.monotonic()
            say(f"{len(told.versions)} modules resolved, {fetched} jars downloaded")
    return told
