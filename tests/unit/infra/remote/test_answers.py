"""Answers that are JSON but that no agent gives: each one, of any shape, is one clear error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infra.cluster import Handle, Host, Role
from infra.remote import answers
from infra.remote.answers import SHAPES, Misspoken, Refused
from infra.remote.hosts import RemoteHosts
from infra.remote.requests import REQUESTS

PROOF = {"fired_ns": 1, "proved_ns": 2, "done": {"processes killed": 1}, "left": {"survivors": 0}}
GOOD: dict[str, list[Any]] = {
    "prepare": [None],
    "call": [5],
    "claim": [None, {"run_id": "run-1", "file": "/tmp/claim"}],
    "clock": [10**18],
    "empty_disk": [None],
    "fire": [None, {"proof": PROOF, "ports": [22]}],
    "heard": [None, [{}, False, False], [{"worker-1": 5}, False, True]],
    "listen": [4711],
    "refresh": [True],
    "running": [[], ["broker"]],
    "share": ["", "another file is there"],
    "spawn": [42],
    "stop": [None],
    "survey": [{"missing": [], "taken": [22], "refusals": {"delay": None}, "owner": None, "file": "/tmp/claim"}],
    "undo": [PROOF],
    "usage": [{"cpu_s": 1, "rss_bytes": 2}, {"cpu_s": 1.5, "rss_bytes": 2}],
    "vacate": [{"claims": 0}],
}
SHAPELESS = [None, 5, 0.5, True, "1", [], [1, 2, 3], {"x": "y"}, float("nan")]


def test_all_that_an_agent_answers_has_its_shape() -> None:
    assert {what for what, request in REQUESTS.items() if request.answered} == SHAPES.keys() == GOOD.keys()


@pytest.mark.parametrize("what", GOOD)
def test_what_an_agent_answers_is_taken_as_it_is(what: str) -> None:
    for good in GOOD[what]:
        assert json.loads(json.dumps(answers.done("worker-1", what, {"done": good}))) == good


def _is_refused(what: str, bad: Any) -> bool:
    try:
        answers.done("worker-1", what, {"done": bad})
    except Misspoken:
        return True
    return False


@pytest.mark.parametrize("what", GOOD)
def test_an_answer_of_another_shape_is_refused(what: str) -> None:
    """Of values of all kinds, those that are not of the same kind as a good answer; and good ones with a bad field."""
    kinds = {type(good) for good in GOOD[what]} | ({int} if float in map(type, GOOD[what]) else set())
    foreign = [value for value in SHAPELESS if type(value) not in kinds]
    objects = [good for good in GOOD[what] if isinstance(good, dict)]
    spoilt = [{**good, name: [[None]]} for good in objects for name in good]
    assert [bad for bad in [*foreign, *spoilt, [[None]]] if not _is_refused(what, bad)] == []


@pytest.mark.parametrize("answer", [None, [], {}, "done", {"failed": 5}, {"failed": None}, {"failed": {}}])
def test_what_is_no_answer_at_all_is_the_same_error(answer: Any) -> None:
    with pytest.raises(Misspoken, match="what came back for 'clock'"):
        answers.done("worker-1", "clock", answer)


def test_a_refusal_is_told_in_the_words_of_the_host() -> None:
    with pytest.raises(Refused, match="worker-1: nft: not permitted; mend that on the host and run again"):
        answers.done("worker-1", "prepare", {"failed": "nft: not permitted"})


class Parrot:
    """A session whose other end gives the same answer to every request."""

    alive = True

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def tell(self, **request: Any) -> None: ...

    def ask(self, within_s: float, **request: Any) -> Any:
        return self.answer if request["do"] != "clock" or isinstance(self.answer, list) else {"done": 1}

    def close(self) -> None: ...


@pytest.mark.parametrize("answer", [[], {"done": {}}, {"done": "many"}, {"gone": 1}])
def test_a_host_that_talks_nonsense_is_told_by_all_that_ask_it(answer: Any, token: str, tmp_path) -> None:
    host = Host("worker-1", "127.0.250.1", Role.GATEWAY, 1, 512)
    handle = Handle("run-1", "ssh", token, str(tmp_path), {"worker-1": host})
    hosts = RemoteHosts(lambda *_: Parrot(answer))
    for ask in (
        lambda: hosts.usage(handle, "worker-1"),
        lambda: hosts.running(handle, "worker-1"),
        lambda: hosts.spawn(handle, "worker-1", "a", ["true"]),
    ):
        with pytest.raises(Misspoken, match="worker-1"):
            ask()
