"""Finds the Java virtual machine that runs Spark and Kafka. Never installs one."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from experiments.errors import EnvironmentFailure

MINIMUM = 17  # Spark 4 runs on 17, 21 and 25
DISTRIBUTION_HOMES = Path("/usr/lib/jvm")
PROBE_TIMEOUT_S = 30


@dataclass(frozen=True)
class Java:
    """A usable JVM: `home` is the value for JAVA_HOME, `version` the feature release (17, 21, ...)."""

    home: Path
    version: int

    @property
    def launcher(self) -> Path:
        """The `java` program."""
        return self.home / "bin" / "java"


def find_java() -> Java:
    """The JVM of $JAVA_HOME if that is set, otherwise the first usable one of PATH and /usr/lib/jvm.

    A JAVA_HOME that cannot be used is an error rather than a reason to look elsewhere: someone set it on purpose.
    A process looks once, unless these variables change: to ask a JVM takes a tenth of a second. Raises
    `EnvironmentFailure` that names what was found and the remedy; the next call then looks again.
    """
    return _found(os.environ.get("JAVA_HOME"), os.environ.get("PATH"))


@functools.cache
def _found(home: str | None, _path: str | None) -> Java:
    if home:
        found = _probe(Path(home) / "bin" / "java")
        if isinstance(found, Java):
            return found
        raise EnvironmentFailure(
            f"JAVA_HOME={home}: {found}, and Java {MINIMUM} or newer is needed",
            "point JAVA_HOME at such a Java or unset it",
        )
    return _first_usable()


def _first_usable() -> Java:
    rejected = []
    for launcher in _candidates():
        found = _probe(launcher)
        if isinstance(found, Java):
            return found
        rejected.append(f"{launcher} {found}")
    raise EnvironmentFailure(
        f"Java {MINIMUM} or newer is needed; found: {', '.join(rejected) or 'none on PATH or in /usr/lib/jvm'}",
        "run `make setup` as root, or install openjdk-17-jre-headless or newer",
    )


def _candidates() -> list[Path]:
    on_path = shutil.which("java")
    installed = sorted(DISTRIBUTION_HOMES.glob("*/bin/java"))
    return ([Path(on_path)] if on_path else []) + installed


def _probe(launcher: Path) -> Java | str:
    """Ask a launcher for its version and home; returns what is wrong with it when it cannot be used."""
    command = [str(launcher), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=PROBE_TIMEOUT_S,
            check=False,
        ).stdout
    except OSError as error:
        return f"does not start ({error.strerror})"
    except subprocess.TimeoutExpired:
        return f"gave no answer in {PROBE_TIMEOUT_S} s"
    version = re.search(r'version "(?:1\.)?(\d+)', answer)
    if not version:
        return "is not a working Java"
    if int(version[1]) < MINIMUM:
        return f"is Java {version[1]}"
    # The launcher on PATH can be a link or the shim of a version manager: only Java itself knows its home.
    home = re.search(r"^\s*java\.home = (.+)$", answer, re.MULTILINE)
    return Java(Path(home[1].strip()), int(version[1])) if home else "does not tell its home"


def main() -> int:
    """Say which JVM will be used; exit code 3 and one line when there is none."""
    try:
        java = find_java()
    except EnvironmentFailure as failure:
        print(failure, file=sys.stderr)
        return failure.exit_code
    print(f"Java {java.version} at {java.home}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
