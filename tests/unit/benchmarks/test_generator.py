"""What making and sending events costs: both make as many events at a time."""

from __future__ import annotations

import pytest

from benchmarks.testbed import generator
from benchmarks.testbed.generator import NOT_IDEMPOTENT, _measured
from benchmarks.testbed.in_process_broker import InProcessBroker
from experiments.errors import BadInput
from workloads.sending import producing


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> InProcessBroker:
    monkeypatch.setattr(producing, "SETTINGS", NOT_IDEMPOTENT)
    return InProcessBroker()


@pytest.mark.parametrize(("rate", "lengths"), [(5000.0, [1000, 1000]), (None, [2000])])
def test_events_are_made_as_for_sending(
    rate: float | None, lengths: list[int], broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[int]()

    def make(start: int, stop: int) -> list[bytes]:
        made.append(stop - start)
        return [b"{}"] * (stop - start)

    monkeypatch.setattr(generator, "records", lambda *_: make)
    assert min(_measured(broker.reach, 2000, None, rate)) > 0
    assert made == lengths * 2, "for sending, and without"


@pytest.mark.parametrize(
    ("events", "batch", "rate", "least"),
    [(99, None, 5000.0, "100"), (399, 100, None, "400"), (499, 101, 5000.0, "500")],
)
def test_too_few_events_are_refused(
    events: int, batch: int | None, rate: float | None, least: str, broker: InProcessBroker
) -> None:
    with pytest.raises(BadInput, match=f"--events: {events} is not usable; allowed: at least {least}"):
        _measured(broker.reach, events, batch, rate)
