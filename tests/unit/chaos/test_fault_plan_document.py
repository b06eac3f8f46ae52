"""The fault plan of a run on its way to the injector, the tables and the pages."""

import json

import pytest

from chaos.events import FaultEvent
from chaos.fault_plan import FaultPlan
from experiments.fault_kinds import Direction, FaultKind, FaultOptions

KILL = FaultEvent(1.5, "host a", ("a",), FaultKind.KILL, 2.0)
CUT = FaultEvent(2.0, "b", ("b", "c"), FaultKind.PARTITION, 3.0, FaultOptions(peers=("a",), direction=Direction.IN))
PLAN = FaultPlan(10**9, 9 * 10**9, (KILL, CUT), 2)


def test_a_plan_comes_back_as_it_was_written(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(PLAN.to_json()), encoding="utf-8")
    assert FaultPlan.read(path) == PLAN
    assert list(PLAN.to_json()) == ["window_start_ns", "window_end_ns", "max_down", "events"]


def test_a_plan_that_says_nothing_of_a_limit_has_none():
    document = {"window_start_ns": 1, "window_end_ns": 2, "events": []}
    assert FaultPlan.from_json(document) == FaultPlan(1, 2, (), None)


def test_strikes_are_counted_by_host_and_due_by_the_window():
    assert (PLAN.strikes, PLAN.due_ns(KILL)) == (3, 2_500_000_000)


@pytest.mark.parametrize("lacks", ["window_start_ns", "window_end_ns", "events"])
def test_a_document_that_lacks_a_part_is_no_plan(lacks):
    with pytest.raises(LookupError, match=lacks):
        FaultPlan.from_json({name: value for name, value in PLAN.to_json().items() if name != lacks})
