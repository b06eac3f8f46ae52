"""The change to another PySpark, against a launcher that plays Ivy with a registry, and a program that plays uv."""

import hashlib
import json
import re
import sys
from dataclasses import astuple
from pathlib import Path

import pytest

from experiments.errors import BadInput, EnvironmentFailure
from infra.services import new_pyspark
from infra.services.new_pyspark import CONNECTOR, FOLLOWS, Pins, change

ROOT = Path(__file__).parents[4]
NEEDS = {CONNECTOR: "5.6.7", "kafka-clients": "4.5.6", "commons-pool2": "2.99.0", "slf4j-api": "2.0.17"}
JAVA = """
import json, pathlib, re, sys
registry, words = pathlib.Path({registry!r}), sys.argv[1:]
if "-XshowSettings:properties" in words:
    sys.exit(print('openjdk version "17"', ' java.home = {home}', sep=chr(10), file=sys.stderr))
spark = next(word.partition("=")[2] for word in words if word.startswith("-Dspark.version="))
if not (registry / spark).exists():
    print(":::: WARNINGS\\n\\t\\tmodule not found: org.apache.spark#{connector};" + spark)
    if (registry / "down").exists():
        print(":::: ERRORS\\n\\tServer access error at url (java.net.ConnectException: Connection refused)")
    sys.exit(1)
modules = pathlib.Path(words[words.index("-ivy") + 1]).read_text()
if words[-2:] == ["-types", "pom"]:
    assert 'name="{connector}" rev="${{spark.version}}"' in modules
    for name, version in json.loads((registry / spark).read_text()).items():
        print(f"\\tfound org.some#{{name}};{{version}} in public")
else:
    jars = pathlib.Path(words[words.index("-retrieve") + 1].partition("/[")[0])
    for name, version, kind in re.findall(r'name="([^"]+)" rev="([^"]+)" conf="(\\w+)', modules):
        jar = jars / kind / (name + "-" + version.replace("${{spark.version}}", spark) + ".jar")
        jar.parent.mkdir(parents=True, exist_ok=True)
        jar.write_text(jar.name)
"""
UV = """
import pathlib, re, sys
asked, lock = pathlib.Path(sys.argv[-3]).read_text(), pathlib.Path(sys.argv[-1])
version = re.search("pyspark==(.*)", asked)[1]
if version == "9.9.9":
    sys.exit(f"error: because there is no version of\\n pyspark=={version} and you require pyspark=={version}")
if version == "8.8.8":
    sys.exit("error: the index cannot be reached")
lock.write_text(re.sub("pyspark==.*", f"pyspark=={version} \\\\\\\\", lock.read_text()))
"""


@pytest.fixture(autouse=True)
def machine_with_java_and_jars() -> None:
    """Nothing is replaced: Java and Ivy are played by programs."""


@pytest.fixture
def pins(tmp_path: Path) -> Pins:
    """The four files of this checkout, copied."""
    theirs, ours = Pins.of(ROOT), Pins.of(tmp_path / "checkout")
    ours.jars.parent.mkdir(parents=True)
    for path, copy in zip(astuple(theirs), astuple(ours), strict=True):
        copy.write_bytes(path.read_bytes())
    return ours


@pytest.fixture(autouse=True)
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installs the programs; returns the folder with one file for each version of the connector: what this needs.

    A file `down` there makes Ivy fail as if the registry could not be reached.
    """
    home, registry = tmp_path / "jdk", tmp_path / "registry"
    java = JAVA.format(registry=str(registry), home=home, connector=CONNECTOR)
    for path, text in ((home / "bin" / "java", java), (tmp_path / "uv", UV)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!{sys.executable} -S\n{text}")
        path.chmod(0o755)
    registry.mkdir()
    for version in ("5.6.7", "8.8.8", "9.9.9"):
        (registry / version).write_text(json.dumps(NEEDS))
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setattr(new_pyspark, "UV", tmp_path / "uv")
    return registry


def pinned(pins: Pins) -> dict[str, str]:
    """Every version that one of the four files names for Spark and Kafka."""
    found = dict(re.findall(r'name="(\S+)" rev="([^"$]+)"', pins.modules.read_text()))
    found |= {
        f"{name} (jar)": version for name, version in re.findall(r"/(\S+)-([\d.]+)\.jar$", pins.jars.read_text(), re.M)
    }
    for path in (pins.requirements, pins.lock):
        (found[path.name],) = re.findall(r"^pyspark==(\S+)", path.read_text(), re.M)
    return found


def changed(pins: Pins) -> list[str]:
    """Names of the files that are not this checkout's own."""
    pairs = zip(astuple(pins), astuple(Pins.of(ROOT)), strict=True)
    return [ours.name for ours, theirs in pairs if ours.read_bytes() != theirs.read_bytes()]


def test_one_version_changes_all_that_follows_from_it(pins: Pins) -> None:
    change("5.6.7", pins)
    assert pinned(pins) == {
        "kafka-clients": "4.5.6",
        "kafka_2.13": "4.5.6",
        "commons-pool2": "2.99.0",
        "slf4j-simple": "1.7.36",
        "spark-sql-kafka-0-10_2.13 (jar)": "5.6.7",
        "spark-token-provider-kafka-0-10_2.13 (jar)": "5.6.7",
        "kafka-clients (jar)": "4.5.6",
        "kafka_2.13 (jar)": "4.5.6",
        "commons-pool2 (jar)": "2.99.0",
        "slf4j-simple (jar)": "1.7.36",
        "requirements.in": "5.6.7",
        "requirements.lock": "5.6.7",
    }
    kinds = [line.split()[1].partition("/")[0] for line in pins.jars.read_text().splitlines()]
    assert kinds == sorted(kinds, reverse=True), "the connector's come first, as in the class paths"
    for line in pins.jars.read_text().splitlines():
        digest, name = line.split("  ")
        assert digest == hashlib.sha256(name.partition("/")[2].encode()).hexdigest()


@pytest.mark.parametrize("forgotten", list(FOLLOWS))
def test_a_module_that_keeps_its_version_is_noticed(
    pins: Pins, monkeypatch: pytest.MonkeyPatch, forgotten: str
) -> None:
    monkeypatch.delitem(FOLLOWS, forgotten)
    with pytest.raises(AssertionError, match=re.escape(forgotten)):
        test_one_version_changes_all_that_follows_from_it(pins)


@pytest.mark.parametrize(
    ("version", "allowed"),
    [
        ("7.7.7", f"Kafka connector is in the Maven registry: Ivy found no {CONNECTOR} 7.7.7"),
        ("9.9.9", "in PyPI"),
        ("", "a release of PySpark"),
        ("4.2", "a release of PySpark"),
        ('4.2.0" x="', "a release of PySpark"),
    ],
)
def test_a_version_that_is_not_there_is_refused_in_one_line(
    pins: Pins, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], version: str, allowed: str
) -> None:
    monkeypatch.setattr(new_pyspark, "ROOT", pins.requirements.parent)
    assert new_pyspark.main([version]) == BadInput.exit_code
    told = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("jars: ")]
    assert len(told) == 1
    assert allowed in told[0]
    assert changed(pins) == []


def test_a_registry_that_cannot_be_reached_is_no_missing_connector(pins: Pins, registry: Path) -> None:
    (registry / "down").touch()
    with pytest.raises(EnvironmentFailure, match="Connection refused"):
        change("7.7.7", pins)
    assert changed(pins) == []


def test_an_index_that_cannot_be_reached_is_no_missing_version(pins: Pins) -> None:
    with pytest.raises(EnvironmentFailure, match="the index cannot be reached"):
        change("8.8.8", pins)
    assert changed(pins) == []


def test_a_connector_that_needs_no_kafka_of_a_known_name_changes_nothing(pins: Pins, registry: Path) -> None:
    (registry / "5.6.7").write_text("{}")
    with pytest.raises(EnvironmentFailure, match="does not need commons-pool2, kafka-clients"):
        change("5.6.7", pins)
    assert changed(pins) == []


def test_the_locked_kafka_is_the_one_that_the_files_name_once(pins: Pins) -> None:
    pins.modules.write_text(pins.modules.read_text().replace('name="kafka-clients"', 'name="kafka-client"'))
    with pytest.raises(EnvironmentFailure, match="names kafka-clients 0 times"):
        change("5.6.7", pins)
