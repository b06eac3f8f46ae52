"""Requests to the agents of hosts: as they stand on the wire, and as an agent takes them."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from dataclasses import fields
from typing import Any

import pytest

from experiments.fault_kinds import Direction, FaultKind, FaultOptions
from infra.launch import REPOSITORY
from infra.remote import requests
from infra.remote.agent import Agent
from infra.remote.requests import REQUESTS, AgentRequest, PrepareStrike
from infra.ssh.machine_agent import MachineAgent

OPTIONS = FaultOptions(("198.18.0.3",), Direction.IN, 0.5, 0.1)
ON_THE_WIRE: list[tuple[AgentRequest[Any], dict[str, Any]]] = [
    (requests.MeasureUsage(), {"do": "usage"}),
    (requests.ReadClock(), {"do": "clock"}),
    (requests.ListServices(), {"do": "running"}),
    (
        requests.SpawnService(["true"], "/f", "/f/log", {"A": "1"}),
        {"do": "spawn", "command": ["true"], "folder": "/f", "log": "/f/log", "variables": {"A": "1"}},
    ),
    (requests.StopService("broker", 5.0), {"do": "stop", "service": "broker", "limit_s": 5.0}),
    (requests.EmptyDisk(), {"do": "empty_disk"}),
    (
        PrepareStrike(7, FaultKind.PARTITION, OPTIONS),
        {
            "do": "prepare",
            "number": 7,
            "kind": "partition",
            "options": {"peers": ["198.18.0.3"], "direction": "in", "cpu_share": 0.5, "delay": 0.1},
        },
    ),
    (requests.RefreshStrike(7), {"do": "refresh", "number": 7}),
    (requests.Shoot(7, 10**18), {"do": "shoot", "number": 7, "due_ns": 10**18}),
    (requests.Fire(7), {"do": "fire", "number": 7}),
    (requests.CloseStrike(7), {"do": "close", "number": 7}),
    (requests.UndoFault(FaultKind.PAUSE), {"do": "undo", "kind": "pause"}),
    (requests.Listen(), {"do": "listen"}),
    (requests.SendWord("w", [["a", 1]], 5), {"do": "call", "word": "w", "to": [["a", 1]], "times": 5}),
    (requests.TakeHeard(4711), {"do": "heard", "port": 4711}),
    (requests.SurveyMachine(["/a"], [22]), {"do": "survey", "needed": ["/a"], "ports": [22]}),
    (requests.ClaimMachine("run-1", "/r"), {"do": "claim", "run_id": "run-1", "root": "/r"}),
    (requests.ShareFile("/r/x", "n"), {"do": "share", "path": "/r/x", "nonce": "n"}),
    (requests.VacateMachine(), {"do": "vacate"}),
    (requests.Leave(), {"do": "leave"}),
]


@pytest.mark.parametrize(("request_", "document"), ON_THE_WIRE, ids=[wire["do"] for _, wire in ON_THE_WIRE])
def test_a_request_reads_as_it_was_sent(request_: AgentRequest[Any], document: dict[str, Any]) -> None:
    line = json.dumps(request_.to_json())
    assert json.loads(line) == document
    assert requests.decode(line) == request_


def test_every_request_is_shown_above_and_is_a_method_that_takes_its_fields() -> None:
    assert [request.do for request, _ in ON_THE_WIRE] == list(REQUESTS)
    methods = {name: getattr(MachineAgent, name) for kind in (Agent, MachineAgent) for name in vars(kind)}
    taken = {name: list(inspect.signature(each).parameters)[1:] for name, each in methods.items() if name[0] != "_"}
    assert taken == {what: [field.name for field in fields(request)] for what, request in REQUESTS.items()}


def test_an_agent_takes_kinds_and_options_as_they_are_here() -> None:
    read = requests.decode(json.dumps(PrepareStrike(7, FaultKind.PARTITION, OPTIONS).to_json()))
    assert isinstance(read, PrepareStrike)
    assert (type(read.kind), type(read.options.direction), read.options.peers) == (FaultKind, Direction, OPTIONS.peers)
    plain = requests.decode('{"do": "prepare", "number": 1, "kind": "kill", "options": {}}')
    assert plain == PrepareStrike(1, FaultKind.KILL, FaultOptions())


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ('{"do": "__init__", "host": "h"}', LookupError),
        ('{"do": "_prove"}', LookupError),
        ('{"do": "clock", "of": 1}', TypeError),
        ('{"do": "stop", "service": "broker"}', TypeError),
        ('{"do": "undo", "kind": "flood"}', ValueError),
    ],
)
def test_what_is_no_request_is_none(line: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        requests.decode(line)


def test_an_agent_runs_with_no_library_but_pythons() -> None:
    """As the driver starts it: `-S` leaves installed packages out."""
    done = subprocess.run([sys.executable, "-S", "-c", "import infra.ssh.machine_agent"], cwd=REPOSITORY, check=False)
    assert done.returncode == 0
