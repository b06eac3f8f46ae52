"""A run store of its own for each test."""

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AFTERSHOCK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
