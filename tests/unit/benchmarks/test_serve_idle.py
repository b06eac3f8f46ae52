"""What an idle Airflow costs is counted by component, also if one of them ends meanwhile."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from benchmarks.orchestration import serve_idle
from benchmarks.orchestration.serve_idle import cpu_by_component
from experiments.errors import EnvironmentFailure

DEAF = f"""#!{sys.executable}
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("Airflow: http://127.0.0.1", flush=True)
time.sleep(600)
"""


def process(title: str, used_s: float, *children: Any) -> Any:
    """A process with this command line and CPU time."""
    times = SimpleNamespace(user=used_s, system=0.0, children_user=0.0, children_system=0.0)
    found = {"cmdline": lambda: [title], "cpu_times": lambda: times}
    return SimpleNamespace(children=lambda recursive=False: list(children), **found)


@pytest.mark.parametrize("asked", ["cmdline", "children"])
def test_a_component_that_has_just_ended_counts_for_nothing(asked: str) -> None:
    def gone(**_: bool) -> list[str]:
        raise psutil.NoSuchProcess(7)

    ended, scheduler = process("airflow api_server", 5.0), process("airflow scheduler", 2.0, process("a task", 1.0))
    setattr(ended, asked, gone)
    found = cpu_by_component(cast(psutil.Process, process("aftershock serve", 0.5, ended, scheduler)))
    assert {name: used_s for name, used_s in found.items() if used_s} == {"serve": 0.5, "scheduler": 3.0}


def test_an_airflow_that_does_not_end_is_killed_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "aftershock"
    program.write_text(DEAF)
    program.chmod(0o700)
    monkeypatch.setattr(serve_idle, "PROGRAM", program)
    monkeypatch.setattr(serve_idle, "ENDING_LIMIT_S", 0.1)
    served = serve_idle.served(str(tmp_path))
    process, _ = served.__enter__()
    with pytest.raises(EnvironmentFailure, match="after SIGTERM, and was killed"):
        served.__exit__(None, None, None)
    assert not process.is_running()
