"""Whose a machine is: one of many that want it at once gets it, and only its owner gives it up."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from infra.ssh import claims
from infra.ssh.claims import Claim


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(claims, "FOLDER", tmp_path)
    return tmp_path


def test_of_many_who_want_a_machine_one_gets_it_and_the_others_learn_whose_it_is(folder: Path) -> None:
    wanted = [Claim(f"m0-{number}", f"run-{number}", "/root", (22,)) for number in range(32)]
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(claims.take, wanted))
    (winner,) = [claim for claim, answer in zip(wanted, answers, strict=True) if answer is None]
    assert {answer for answer in answers if answer} == {winner} == {claims.owner()}
    assert claims.take(winner) is None, "who has it may ask again"
    (file,) = folder.iterdir()
    assert file == claims.file()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_only_its_owner_gives_a_machine_up() -> None:
    claims.take(Claim("m0-1", "run-1", "/root"))
    claims.give_up("m0-2")
    assert claims.owner() == Claim("m0-1", "run-1", "/root")
    claims.give_up("m0-1")
    claims.give_up("m0-1")
    assert claims.owner() is None
    assert claims.take(Claim("m0-2", "run-2", "/root")) is None
