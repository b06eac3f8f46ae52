"""No unit test looks for Java, or downloads jars: what they call finds both, on any machine."""

from pathlib import Path

import pytest

from infra.services import jars, jvm
from infra.services.jars import ensure_jars
from infra.services.jvm import find_java


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Neither Java nor jars are on this machine, and whoever starts Ivy or a launcher fails."""
    monkeypatch.setenv("AFTERSHOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-jdk"))
    monkeypatch.setattr(jars, "_resolve", lambda scratch: pytest.fail("it would download"))
    monkeypatch.setattr(jvm.subprocess, "run", lambda *_, **__: pytest.fail("it would start Java"))
    return tmp_path


@pytest.mark.parametrize("is_set", [True, False])
def test_java_is_found_without_a_search(bare_machine: Path, monkeypatch: pytest.MonkeyPatch, is_set: bool) -> None:
    if not is_set:
        monkeypatch.delenv("JAVA_HOME")
    assert find_java().version == jvm.MINIMUM


def test_jars_are_found_without_a_download(bare_machine: Path) -> None:
    found = ensure_jars()
    assert found.broker
    assert found.connector
    assert list(bare_machine.iterdir()) == []
