"""How fast a machine is, and which machines are equally fast."""

import pytest

from results.runs import machine_speed
from results.runs.machine_speed import are_alike


def test_the_fastest_piece_tells_the_speed(monkeypatch):
    times_s = iter([0.04, 0.02, 0.08])
    monkeypatch.setattr(machine_speed, "PIECES", 3)
    monkeypatch.setattr(machine_speed, "_cpu_time_s", lambda: next(times_s))
    assert machine_speed.machine_speed() == pytest.approx(50)


def test_a_piece_of_work_takes_cpu_time(monkeypatch):
    monkeypatch.setattr(machine_speed, "PIECES", 1)
    assert 0.1 < machine_speed.machine_speed() < 10_000


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [(50, 50, True), (50, 45.5, True), (50, 45, False), (45, 50, False), (None, 45, True), (45, None, True)],
)
def test_machines_are_alike_up_to_a_tenth(one, other, alike):
    assert are_alike(one, other) is alike
