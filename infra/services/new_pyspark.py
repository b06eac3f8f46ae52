"""Moves this checkout to another PySpark: `make pyspark VERSION=4.2.0`.

The version stands in requirements.in. All that follows from it is written here: requirements.lock, jars.lock, and in
ivy.xml the versions of Kafka and of what else the connector needs. Nothing is written unless all of it was found.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from experiments.errors import AftershockError, BadInput, EnvironmentFailure
from infra.services import ivy, jars

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
COMPILE = "--quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate"
CONNECTOR = "spark-sql-kafka-0-10_2.13"
# Asks for the connector with all that it needs. Hadoop's client is left out, as PySpark brings it.
PROBE = f"""<ivy-module version="2.0">
  <info organisation="aftershock" module="connector"/>
  <configurations><conf name="connector"/></configurations>
  <dependencies>
    <dependency org="org.apache.spark" name="{CONNECTOR}" rev="${{spark.version}}" conf="connector->default"/>
    <exclude org="org.apache.hadoop"/>
  </dependencies>
</ivy-module>
"""
# A module of ivy.xml, and what the connector needs in that version. The broker is of the version of its clients.
FOLLOWS = {"kafka-clients": "kafka-clients", "kafka_2.13": "kafka-clients", "commons-pool2": "commons-pool2"}


@dataclass(frozen=True)
class Pins:
    """The four files of a checkout that pin PySpark and what follows from it."""

    requirements: Path
    lock: Path
    modules: Path
    jars: Path

    @classmethod
    def of(cls, root: Path) -> Pins:
        """Those of the checkout in a folder."""
        services = root / "infra" / "services"
        return cls(root / "requirements.in", root / "requirements.lock", services / "ivy.xml", services / "jars.lock")


def change(version: str, pins: Pins) -> None:
    """Pin another PySpark, its connector, and the Kafka that the connector is built against.

    Raises `BadInput` for a version that PyPI or the Maven registry does not have, and `EnvironmentFailure` if they
    cannot be asked. Then no file has changed.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise BadInput("VERSION", version, "a release of PySpark, such as `make pyspark VERSION=4.2.0`")
    with tempfile.TemporaryDirectory(prefix="aftershock-pyspark-") as folder:
        new = Pins(*(Path(folder) / name for name in ("requirements.in", "requirements.lock", "ivy.xml", "jars.lock")))
        needed = _needed_by_connector(version, Path(folder))
        new.modules.write_text(_with_versions(pins.modules.read_text(encoding="utf-8"), needed), encoding="utf-8")
        new.requirements.write_text(_asking_for(version, pins.requirements), encoding="utf-8")
        shutil.copy(pins.lock, new.lock)  # all other packages stay as they are locked, if they can
        _compile(version, new)
        ivy.say(f"downloading those of PySpark {version} (about a minute)")
        new.jars.write_text(jars.lock_of(jars.retrieve(new.modules, version, Path(folder))), encoding="utf-8")
        for name in ("requirements", "lock", "modules", "jars"):
            shutil.copyfile(getattr(new, name), getattr(pins, name))


def _needed_by_connector(version: str, scratch: Path) -> dict[str, str]:
    """The version of each module that the connector of a PySpark needs, by name."""
    probe = scratch / "probe.xml"
    probe.write_text(PROBE, encoding="utf-8")
    try:
        needed = ivy.resolve(probe, version, scratch, "-types", "pom")  # of which there is none: no jar is downloaded
    except EnvironmentFailure as failure:
        if f"module not found: org.apache.spark#{CONNECTOR};{version}" not in failure.cause:
            raise
        allowed = f"a version whose Kafka connector is in the Maven registry: Ivy found no {CONNECTOR} {version}"
        raise BadInput("VERSION", version, allowed) from None
    if missing := set(FOLLOWS.values()) - set(needed):
        told = f"the connector of PySpark {version} does not need {', '.join(sorted(missing))}"
        raise EnvironmentFailure(told, "change infra/services/ivy.xml and FOLLOWS in infra/services/new_pyspark.py")
    return needed


def _with_versions(modules: str, needed: dict[str, str]) -> str:
    """The text of ivy.xml with the versions that a connector needs."""
    for name, followed in FOLLOWS.items():
        pattern = rf'(name="{re.escape(name)}" rev=")[^"]*"'
        modules, count = re.subn(pattern, rf'\g<1>{needed[followed]}"', modules)
        if count != 1:
            raise EnvironmentFailure(f"ivy.xml names {name} {count} times", "name each module once, name before rev")
    return modules


def _asking_for(version: str, requirements: Path) -> str:
    """The text of requirements.in with another version of pyspark."""
    pattern = re.compile(r"^pyspark==\S+$", re.MULTILINE)
    text, count = pattern.subn(f"pyspark=={version}", requirements.read_text(encoding="utf-8"))
    if count != 1:
        raise EnvironmentFailure(
            f"{requirements.name} names pyspark {count} times", "write one line `pyspark==VERSION`"
        )
    return text


def _compile(version: str, new: Pins) -> None:
    """Let uv lock the packages."""
    command = [str(UV), "pip", "compile", *COMPILE.split(), str(new.requirements), "-o", str(new.lock)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        if f"there is no version of pyspark=={version}" in " ".join(done.stderr.split()):
            raise BadInput("VERSION", version, "a version of pyspark that is in PyPI")
        remedy = "check the network, and which packages requirements.in pins that this PySpark does not allow"
        raise EnvironmentFailure(f"uv could not lock the packages ({done.stderr})", remedy)


def main(arguments: list[str]) -> int:
    """Change to the version that is the only argument; one line on standard error if that fails."""
    try:
        change(arguments[0] if arguments else "", Pins.of(ROOT))
    except AftershockError as failure:
        print(failure, file=sys.stderr)
        return failure.exit_code
    print(f"PySpark {arguments[0]} is pinned; `make test` installs and tries it")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
