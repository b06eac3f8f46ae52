"""A program that is started before a strike acts when it is told, or not at all."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from infra.strikes import waiting_program
from infra.strikes.waiting_program import WaitingProgram
from tests.unit.marked_processes import wait_for


def test_it_acts_when_it_gets_its_input(tmp_path: Path) -> None:
    program = WaitingProgram("sh", "-c", f"cat > {tmp_path}/order; cp {tmp_path}/order {tmp_path}/done")
    wait_for((tmp_path / "order").exists)
    assert not (tmp_path / "done").exists()
    program.act("an order\n")
    assert (tmp_path / "done").read_text(encoding="utf-8") == "an order\n"
    program.close()


@pytest.mark.parametrize("given_up", [False, True])
def test_one_that_is_too_slow_or_given_up_does_not_act_later(
    given_up: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then the fault may have been undone, and nobody would undo it again."""
    monkeypatch.setattr(waiting_program, "LIMIT_S", 0.1)
    program = WaitingProgram("sh", "-c", f"read -r order && sleep 0.4 && : > {tmp_path}/done")
    if given_up:
        program.close()
    else:
        program.act("an order\n")
    time.sleep(0.8)
    assert not (tmp_path / "done").exists()
