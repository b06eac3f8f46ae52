"""Whose a machine is: one of many that want it at once gets it, and only its owner gives it up."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from experiments.errors import EnvironmentFailure
from infra.ssh import claims
from infra.ssh.claims import Claim
from tests.unit.strange_files import STRANGE, put

NOBODY = 65534


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


@pytest.mark.parametrize("kind", STRANGE)
def test_what_is_no_file_is_no_claim(kind: str, folder: Path) -> None:
    put(kind, claims.file())
    for use in (
        claims.owner,
        lambda: claims.take(Claim("m0-0123456789abcdef", "run-1", "/root")),
        lambda: claims.give_up("m0-0123456789abcdef"),
    ):
        with pytest.raises(EnvironmentFailure, match=f"is {kind}, where a regular file belongs; remove it"):
            use()
    assert [path.name for path in folder.iterdir()] == [claims.file().name], "no scratch copy stays"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"token": 1, "run_id": "r", "root": "/", "ports": []}',
                                  '{"token": "m0-1", "run_id": "r", "root": "/", "ports": [], "more": 1}',
                                  '{"token": "m0-1", "run_id": "r", "root": "/", "ports": ["22"]}'])  # fmt: skip
def test_a_damaged_claim_is_one_line(text: str) -> None:
    claims.file().write_text(text)
    for use in (claims.owner, lambda: claims.take(Claim("m0-1", "run-1", "/root"))):
        with pytest.raises(EnvironmentFailure, match=r"aftershock-machine-\d+ is damaged") as failure:
            use()
        assert "\n" not in str(failure.value)


def test_the_claim_of_another_user_is_never_ours() -> None:
    if os.geteuid():
        pytest.skip("only root can make another user's file")
    ours = Claim("m0-0123456789abcdef", "run-1", "/root", (22,))
    assert claims.take(ours) is None
    os.chown(claims.file(), NOBODY, NOBODY)
    assert claims.take(ours) == claims.owner() == Claim("", claims.OF_ANOTHER_USER, "")
    claims.give_up(ours.token)
    assert claims.file().exists()


def test_who_waits_for_a_claim_that_comes_and_goes_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody takes the machine and gives it up again, each time just before it is looked at."""
    claims.take(Claim("m0-1", "run-1", "/root"))
    looks = iter(range(10 * claims.ATTEMPTS))

    def never_there() -> None:
        next(looks)  # raises when it is asked without end

    monkeypatch.setattr(claims, "owner", never_there)
    with pytest.raises(EnvironmentFailure, match="comes and goes; look who makes it"):
        claims.take(Claim("m0-2", "run-2", "/root"))
