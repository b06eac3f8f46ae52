"""The strikes of `interruptions` hit: code that is never struck passes for nothing that outlives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.errors import BadInput
from tests.unit.interruptions import Interruption, at_every_change


@pytest.mark.parametrize("interruption", Interruption)
def test_each_change_is_struck_once(tmp_path: Path, interruption: Interruption) -> None:
    def two_changes() -> None:
        (tmp_path / "folder").mkdir(exist_ok=True)
        (tmp_path / "file").write_text("more than twenty bytes\n", encoding="utf-8")

    assert list(at_every_change(two_changes, tmp_path, interruption)) == [1, 2, 3], "the last time it gets through"


def test_code_that_changes_nothing_there_is_not_taken_for_code_that_outlives_strikes(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    with pytest.raises(AssertionError, match=r"makes no change in .*/here: it was never struck"):
        list(at_every_change(elsewhere.mkdir, tmp_path / "here", Interruption.KILL))


@pytest.mark.parametrize("error", [OSError("no file"), BadInput("run_id", "run-1", "another")])
def test_code_that_fails_without_a_strike_is_not_taken_for_one_that_a_strike_made_fail(
    tmp_path: Path, error: Exception
) -> None:
    def fails() -> None:
        raise error

    with pytest.raises(AssertionError, match="it ended with 13 when it was struck at its change 1"):
        list(at_every_change(fails, tmp_path, Interruption.KILL))
