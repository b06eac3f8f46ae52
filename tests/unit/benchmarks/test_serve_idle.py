"""What an idle Airflow costs is counted by component, also if one of them ends meanwhile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from benchmarks.orchestration.serve_idle import cpu_by_component


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
