"""How the values of a field are told for several runs."""

import pytest

from results.regression.wording import values_by_run


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([20.0, None, None], "20 (run 1), null (runs 2, 3)"),
        (["task", True, "task"], "task (runs 1, 3), true (run 2)"),
        ([[], [{"at": 12.5, "kind": "kill", "targets": ["worker-1"]}]], "[] (run 1), a list of 1 (run 2)"),
        (["x" * 50, "y"], f"{'x' * 20} ... {'x' * 20} (run 1), y (run 2)"),
        (
            [f"{'x' * 25}{folder}{'x' * 25}" for folder in "ab"],
            f'"{"x" * 25}a{"x" * 25}" (run 1), "{"x" * 25}b{"x" * 25}" (run 2)',
        ),
    ],
)
def test_each_value_is_told_once_with_its_runs(values, text):
    assert values_by_run(values) == text
