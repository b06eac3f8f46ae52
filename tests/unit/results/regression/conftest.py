"""What the tests of regressions share."""

import pytest


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AFTERSHOCK_HOME", str(tmp_path))
    return tmp_path
