"""The input of the window tree: the same tuples however they are made, and marks that let the right share through."""

import json

import numpy as np
import pytest

from experiments.workloads.window_tree import WindowTreeSpec
from workloads.schedule import Schedule
from workloads.window_tree.input import FACTOR, MARKS, TUPLES, VALUES, limit, records, tuples

SPEC = WindowTreeSpec(stream_seed=7)
SCHEDULE = Schedule(1_795_173_799_675_000_000, 16_000.0, SPEC.sources)


def test_tuples_have_their_columns_their_due_times_and_their_bounds():
    found = tuples(SPEC, SCHEDULE, 5, 20_005)
    assert found.schema == TUPLES
    assert found["position"].to_pylist() == list(range(5, 20_005))
    assert found["at_ns"].to_pylist() == [SCHEDULE.due_ms(p) * 10**6 for p in range(5, 20_005)]
    marks, values = found["mark"].to_numpy(), found["value"].to_numpy()
    assert 0 < marks.min() < MARKS / 100 < MARKS * 0.99 < marks.max() < MARKS
    assert 0 <= values.min() < VALUES / 100 < VALUES * 0.99 < values.max() < VALUES
    assert abs(np.corrcoef(marks, values)[0, 1]) < 0.03


def test_messages_say_mark_and_value_of_the_same_tuples():
    found = [json.loads(value) for value in records(SPEC, SCHEDULE)(100, 200)]
    made = tuples(SPEC, SCHEDULE, 100, 200).select(["mark", "value"]).to_pylist()
    assert found == [{"kind": "tuple", **each} for each in made]


@pytest.mark.parametrize("selectivity", [0.01, 0.3, 0.5, 1.0])
def test_each_operator_lets_its_share_of_what_it_gets_through(selectivity):
    bar = limit(SPEC.model_copy(update={"selectivity": selectivity}))
    marks = tuples(SPEC, SCHEDULE, 0, 400_000)["mark"].to_numpy()
    for _ in range(SPEC.depth if selectivity >= 0.3 else 2):
        passed = marks[marks < bar]
        spread = 5 * (selectivity * (1 - selectivity) / marks.size) ** 0.5
        assert abs(passed.size / marks.size - selectivity) <= spread
        marks = passed * FACTOR % MARKS


def test_the_load_moves_from_one_quarter_of_the_sources_to_the_next():
    """Of the others one in eight tuples has a mark that may pass, and of those a half does."""
    moving = SPEC.model_copy(update={"moves_every": 16_000})
    marks = tuples(moving, SCHEDULE, 0, 80_000)["mark"].to_numpy().reshape(5, 1000, 4, 4)  # turn, .., quarter, source
    passed = (marks < limit(moving)).mean(axis=(1, 3))
    assert 0 < marks.min() <= marks.max() < MARKS
    for turn, shares in enumerate(passed):
        expected = [0.5 if quarter == turn % 4 else 0.5 / 8 for quarter in range(4)]
        assert shares == pytest.approx(expected, abs=0.04)


def test_a_load_that_stays_is_that_of_earlier_versions():
    assert tuples(SPEC, SCHEDULE, 0, 2).select(["mark", "value"]).to_pylist() == [
        {"mark": 555878834, "value": 122208},
        {"mark": 1679701160, "value": 881000},
    ]


def test_another_seed_gives_other_tuples():
    assert tuples(SPEC, SCHEDULE, 0, 9) != tuples(SPEC.model_copy(update={"stream_seed": 8}), SCHEDULE, 0, 9)
