"""What fails keeps nothing else from being done, and hides no other failure."""

from __future__ import annotations

import errno

import pytest

from experiments.errors import BadInput, EnvironmentFailure
from infra.attempts import each_tried, try_all


def _refused() -> None:
    raise OSError(errno.EMFILE, "Too many open files")


def _stays(what: str) -> None:
    raise EnvironmentFailure(f"{what} stays", "look at it")


def test_what_the_system_refuses_keeps_no_other_act_from_being_tried() -> None:
    done: list[str] = []
    failures = each_tried([_refused, lambda: done.append("this one")])
    assert [failure.cause for failure in failures] == ["the system: Too many open files"]
    assert done == ["this one"]


def test_every_failure_is_told() -> None:
    with pytest.raises(EnvironmentFailure) as told:
        try_all(lambda: _stays("the namespace"), _unusable, lambda: _stays("the disk"))
    assert told.value.cause == "the namespace stays; HOST: 'x' is not usable; allowed: y; the disk stays"
    assert told.value.remedy == "look at it; change it"
    try_all(lambda: None)


def _unusable() -> None:
    raise BadInput("HOST", "x", "y")
