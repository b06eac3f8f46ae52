"""The lock files hold everything that is installed, agree with each other, and name no host."""

import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import pytest

from infra.services import jars

ROOT = Path(__file__).parents[3]


def requirements() -> dict[str, str]:
    """The stanza of each requirement in the lock, by name and version."""
    stanzas = re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text(encoding="utf-8"))
    return {stanza.split()[0]: stanza for stanza in stanzas}


def dependencies() -> list[tuple[str, str, str]]:
    """Configuration, name and version of each dependency in ivy.xml, with the version of the installed PySpark."""
    text = jars.MODULES.read_text(encoding="utf-8").replace("${spark.version}", version("pyspark"))
    found = ElementTree.fromstring(text).iter("dependency")
    return [(item.attrib["conf"].partition("->")[0], item.attrib["name"], item.attrib["rev"]) for item in found]


def test_every_requirement_is_pinned_with_a_hash() -> None:
    for requirement, stanza in requirements().items():
        assert re.fullmatch(r"[a-z0-9._-]+==[^=\s]+", requirement)
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", stanza), requirement


def test_everything_asked_for_is_locked() -> None:
    locked = {requirement.partition("==")[0] for requirement in requirements()}
    asked = {re.split(r"==|\[", line)[0] for line in (ROOT / "requirements.in").read_text(encoding="utf-8").split()}
    assert asked <= locked


@pytest.mark.parametrize("lock", [ROOT / "requirements.lock", jars.LOCK])
def test_locks_name_no_host(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    assert "://" not in text
    assert "index" not in re.sub(r"[\w-]+==\S+", "", text)


def test_every_dependency_of_ivy_is_locked() -> None:
    for configuration, name, revision in dependencies():
        assert f"{configuration}/{name}-{revision}.jar" in jars._locked()


def test_connector_fits_spark_and_broker_fits_connector() -> None:
    revisions = {(configuration, name): revision for configuration, name, revision in dependencies()}
    assert revisions["connector", "spark-sql-kafka-0-10_2.13"] == version("pyspark")
    assert f"\npyspark=={version('pyspark')}\n" in (ROOT / "requirements.in").read_text(encoding="utf-8")
    assert revisions["connector", "kafka-clients"] == revisions["broker", "kafka_2.13"]


def test_set_up_without_a_usable_python_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "infra").mkdir()
    (tmp_path / "infra" / "setup.sh").write_bytes((ROOT / "infra" / "setup.sh").read_bytes())
    for name in ("requirements.lock", "pyproject.toml"):
        (tmp_path / name).touch()
    command = ["sh", "infra/setup.sh"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "PYTHON": "false"}, capture_output=True, text=True
    )
    assert done.returncode == 3
    assert "install python3.11" in done.stderr.splitlines()[-1]
