"""The JVM finder, against launchers that answer as real ones do (no JVM is started)."""

import stat
from pathlib import Path

import pytest

from experiments.errors import EnvironmentFailure
from infra.services import jvm


def install(home: Path, version: str, *, tells_home: bool = True) -> Path:
    """Write a launcher that answers like `java -XshowSettings:properties -version`."""
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    settings = f"    java.home = {home}\\n" if tells_home else ""
    launcher.write_text(f"#!/bin/sh\nprintf 'openjdk version \"{version}\" 2025-04-15\\n{settings}' >&2\n")
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    return home


@pytest.fixture(autouse=True)
def machine_with_java_and_jars() -> None:
    """Nothing is replaced: these tests are about the search."""


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(jvm, "DISTRIBUTION_HOMES", tmp_path / "jvm")


@pytest.mark.parametrize(
    ("text", "version"), [("17", 17), ("17.0.15", 17), ("21.0.1+12-LTS", 21), ("25-ea", 25), ("17-internal", 17)]
)
def test_reads_the_feature_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, version: int) -> None:
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "jdk", text)))
    assert jvm.find_java() == jvm.Java(tmp_path / "jdk", version)


def test_java_home_wins_over_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(install(tmp_path / "other", "21") / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "mine", "17")))
    assert jvm.find_java().home == tmp_path / "mine"


def test_a_shim_on_path_leads_to_the_home_that_java_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "java").symlink_to(install(tmp_path / "jdk", "17") / "bin" / "java")
    monkeypatch.setenv("PATH", str(shims))
    assert jvm.find_java().launcher == tmp_path / "jdk" / "bin" / "java"


def test_an_old_java_on_path_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(install(tmp_path / "old", "11.0.2") / "bin"))
    install(tmp_path / "jvm" / "java-21", "21.0.1")
    assert jvm.find_java() == jvm.Java(tmp_path / "jvm" / "java-21", 21)


@pytest.mark.parametrize(
    ("text", "named"), [("1.8.0_402", "is Java 8"), ("11.0.2", "is Java 11"), ("16", "is Java 16")]
)
def test_an_old_java_home_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, named: str) -> None:
    install(tmp_path / "jvm" / "java-21", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "old", text)))
    with pytest.raises(EnvironmentFailure, match=named) as failure:
        jvm.find_java()
    assert f"JAVA_HOME={tmp_path / 'old'}" in str(failure.value)
    assert "unset it" in failure.value.remedy


def test_a_java_home_without_java_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    with pytest.raises(EnvironmentFailure, match="does not start"):
        jvm.find_java()


def test_no_java_at_all_names_the_package() -> None:
    with pytest.raises(EnvironmentFailure, match="none on PATH") as failure:
        jvm.find_java()
    assert "openjdk-17-jre-headless" in failure.value.remedy
    assert "\n" not in str(failure.value)


def test_something_else_called_java_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(install(tmp_path / "odd", "17", tells_home=False) / "bin"))
    with pytest.raises(EnvironmentFailure, match="does not tell its home"):
        jvm.find_java()


def test_a_process_asks_java_once_unless_it_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []
    probe = jvm._probe
    monkeypatch.setattr(jvm, "_probe", lambda launcher: asked.append(launcher) or probe(launcher))
    for name in ("one", "one", "other"):
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / name))
        if not (tmp_path / name).exists():
            with pytest.raises(EnvironmentFailure):
                jvm.find_java()
            install(tmp_path / name, "17")
        assert jvm.find_java().home == tmp_path / name
    assert asked == [tmp_path / name / "bin" / "java" for name in ("one", "one", "other", "other")]  # not found, found


def test_the_command_ends_with_one_line_and_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert jvm.main() == 3
    assert capsys.readouterr().err.count("\n") == 1
