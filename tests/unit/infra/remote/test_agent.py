"""The far end of an SSH connection, asked through pipes: what it starts, ends and kills are real processes."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from experiments.fault_kinds import PLAIN, FaultKind
from infra.processes import MARK, has_precedence, listening, members
from infra.remote import agent as agent_module
from infra.remote.agent import Agent, _carry_out
from infra.remote.requests import Fire
from infra.strikes.datagrams import send
from tests.unit.loopback import own_address
from tests.unit.marked_processes import start, start_python, wait_for

ADDRESS = own_address(9)
NOTHING = {"survivors": 0, "open ports": 0}
LISTENER = f"import socket, time; s = socket.create_server(('{ADDRESS}', 0)); time.sleep(60)"
LOOKS_ON_FOR_LONG = """
import sys
from infra.remote import agent
from infra.strikes import throttle
throttle.observe.__defaults__ = (5.0,)
agent.serve(agent.Agent(*sys.argv[1:]))
"""


class Asked:
    """An agent, and how it is asked."""

    def __init__(self, token: str, machine_port: int, *program: str) -> None:
        variables = {**os.environ, "SSH_CONNECTION": f"{ADDRESS} 1 {ADDRESS} {machine_port}"}
        variables[MARK] = f"{token}/machine/h"
        command = [sys.executable, "-S", *(program or ("-m", "infra.remote.agent")), "h", ADDRESS, "/nowhere"]
        self.process = subprocess.Popen(
            command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def tell(self, what, **fields):
        self.process.stdin.write(json.dumps({"do": what, **fields}) + "\n")
        self.process.stdin.flush()

    def ask(self, what, **fields):
        self.tell(what, **fields)
        return json.loads(self.process.stdout.readline())

    def fired(self, number):
        """The proof, once it is there."""
        while (answer := self.ask("fire", number=number)) == {"done": None}:
            pass
        return answer["done"]


@pytest.fixture
def agent(token, request):
    """The parameter is the program, where it is another than the agent's own."""
    made = Asked(token, 22, *getattr(request, "param", ()))
    yield made
    made.process.stdin.close()
    assert made.process.wait(60) == 0, "it ends with its input"


def test_it_starts_finds_and_ends_services(agent, token, tmp_path):
    log, variables = tmp_path / "nap.log", {MARK: f"{token}/h/nap", "PATH": os.environ["PATH"]}
    command = ["sh", "-c", "echo awake; exec sleep 60"]
    pid = agent.ask("spawn", command=command, folder=str(tmp_path), log=str(log), variables=variables)["done"]
    wait_for(lambda: members(f"{token}/h/nap") == [pid])
    wait_for(lambda: log.read_text() == "awake\n")
    assert agent.ask("running") == {"done": ["nap"]}
    assert agent.ask("stop", service="nap", limit_s=5.0) == {"done": None}
    assert agent.ask("running") == {"done": []}


def test_what_the_system_refuses_is_told_and_the_agent_goes_on(agent, tmp_path):
    refused = agent.ask("spawn", command=["true"], folder="/nowhere", log=f"{tmp_path}/x/y.log", variables={})
    assert refused == {"failed": f"{tmp_path}/x/y.log: No such file or directory"}
    assert agent.ask("running") == {"done": []}


def test_it_strikes_when_due_and_proves_the_death_but_spares_itself(agent, token):
    victims = [start(f"{token}/h/a"), start_python(f"{token}/h/b", LISTENER)]
    wait_for(lambda: bool(listening(ADDRESS)))
    (port,) = listening(ADDRESS)
    agent.ask("prepare", number=7, kind="kill", options={})
    assert agent.ask("refresh", number=7) == {"done": True}
    due_ns = time.time_ns() + 150_000_000
    agent.tell("shoot", number=7, due_ns=due_ns)
    fired = agent.fired(7)
    assert [victim.wait(60) for victim in victims] == [-signal.SIGKILL] * 2
    assert fired["proof"]["fired_ns"] >= due_ns
    assert (fired["proof"]["done"], fired["proof"]["left"]) == ({"processes killed": 2}, NOTHING)
    assert fired["ports"] == [port]


@pytest.mark.parametrize("rules", [(0, 0), (1, 0), (0, 1)], ids=["none", "at first", "since"])
def test_it_tells_of_rules_that_it_had_when_it_began_to_listen_or_has_now(token, monkeypatch, rules):
    """A partition that struck since then dropped what did not arrive."""
    monkeypatch.setenv(MARK, f"{token}/machine/h")
    monkeypatch.setattr(agent_module, "rules_in_force", iter(rules).__next__)
    agent = Agent("h", ADDRESS, None)
    port = agent.listen()
    send(ADDRESS, "word", [(ADDRESS, port)], 2)
    assert agent.heard(port) == ({"word": 2}, any(rules), False)
    assert not agent.listeners


@pytest.mark.parametrize(
    ("interface", "up", "drops"), [("eth0", True, False), ("eth0", False, True), ("", False, False)]
)
def test_a_host_whose_interface_is_down_drops_what_is_sent_to_it(token, monkeypatch, interface, up, drops):
    """A container whose power-off is in progress still answers over the daemon."""
    monkeypatch.setenv(MARK, f"{token}/machine/h")
    monkeypatch.setattr(agent_module, "interface_of", lambda _: interface)
    monkeypatch.setattr(agent_module, "is_up", lambda _: up)
    agent = Agent("h", ADDRESS, None)
    assert agent.heard(agent.listen()) == ({}, drops, False)


def test_a_port_of_an_agent_before_it_does_not_end_an_agent_with_its_strikes(agent, token):
    """Whoever listened over a connection that was lost asks the next agent, which may have a strike to carry out."""
    victim = start(f"{token}/h/a")
    agent.ask("prepare", number=1, kind="kill", options={})
    assert agent.ask("heard", port=1) == {"done": None}
    assert agent.fired(1)["proof"]["done"] == {"processes killed": 1}
    assert victim.wait(60) == -signal.SIGKILL


def test_two_aims_at_one_host_are_kept_apart(agent, token):
    first = start(f"{token}/h/a")
    agent.ask("prepare", number=1, kind="kill", options={})
    agent.ask("prepare", number=2, kind="kill", options={})
    assert agent.fired(1)["proof"]["done"] == {"processes killed": 1}
    assert first.wait(60) == -signal.SIGKILL
    assert agent.ask("refresh", number=2) == {"done": False}


@pytest.mark.parametrize("agent", [("-c", LOOKS_ON_FOR_LONG)], ids=["looks-on"], indirect=True)
def test_a_proof_that_takes_long_holds_up_no_strike(agent, token):
    start(f"{token}/h/a", "sh", "-c", "while :; do :; done")
    agent.ask("prepare", number=1, kind="slow", options={"cpu_share": 0.5})
    agent.tell("shoot", number=1, due_ns=0)
    assert agent.ask("fire", number=1) == {"done": None}, "it looks on for a while"
    agent.ask("prepare", number=2, kind="pause", options={})
    due_ns = time.time_ns() + 100_000_000
    agent.tell("shoot", number=2, due_ns=due_ns)
    assert agent.ask("fire", number=1) == {"done": None}
    paused = agent.fired(2)["proof"]
    assert paused["fired_ns"] >= due_ns
    assert paused["left"] == {"running": 0}
    slowed = agent.fired(1)["proof"]
    assert slowed["proved_ns"] > paused["fired_ns"]
    assert slowed["left"] == {"above share": 0, "never stopped": 0}
    assert members(f"{token}/machine/h/throttler") == [], "the pause took the place of slowness"
    assert agent.ask("undo", kind="pause")["done"]["left"] == {"frozen": 0}


def test_a_proof_that_a_program_took_too_long_for_has_failed(token, monkeypatch):
    """As when nft hangs. It is no proof that goes on."""

    class Hangs:
        ports = frozenset()

        def fire(self):
            raise TimeoutError(errno.ETIMEDOUT, "no end in 5 s", "nft")

    monkeypatch.setenv(MARK, f"{token}/machine/h")
    made = Agent("h", ADDRESS, None)
    made.strikes[7], made.provers[7] = Hangs(), ThreadPoolExecutor(1)
    answers = (_carry_out(made, Fire(7)) for _ in range(1000))
    told = next((answer for answer in answers if answer != {"done": None}), None)
    assert told == {"failed": "nft: no end in 5 s"}


def test_the_thread_of_a_proof_runs_with_precedence_before_the_strike(token, monkeypatch):
    """A strike that is due would wait until a new thread has a core."""
    monkeypatch.setenv(MARK, f"{token}/machine/h")
    victim = start(f"{token}/h/a")
    made = Agent("h", ADDRESS, None)
    with ThreadPoolExecutor(1) as serving:  # an agent takes precedence itself, which this thread is not to have
        serving.submit(int).result(60)
        before = set(threading.enumerate())
        for number in (1, 2):
            serving.submit(made.prepare, number, FaultKind.KILL, PLAIN).result(60)
        threads = set(threading.enumerate()) - before
        assert [has_precedence(thread.native_id) for thread in threads] == [True, True]
        monkeypatch.setattr(threading.Thread, "start", lambda thread: pytest.fail(f"{thread.name} is started"))
        while (fired := serving.submit(made.fire, 1).result(60)) is None:
            pass
        serving.submit(made.close, 2).result(60)
    assert (fired["proof"]["done"], victim.wait(60)) == ({"processes killed": 1}, -signal.SIGKILL)
    assert not threads & set(threading.enumerate()), "they end with the strikes"


def test_the_port_of_sshd_is_no_sign_of_life(token):
    listener = start_python(f"{token}/machine/h/sshd", LISTENER)
    wait_for(lambda: bool(listening(ADDRESS)))
    agent = Asked(token, listening(ADDRESS)[0])
    victim = start(f"{token}/h/a")
    agent.ask("prepare", number=1, kind="kill", options={})
    fired = agent.fired(1)
    agent.process.stdin.close()
    assert (fired["proof"]["left"], fired["ports"]) == (NOTHING, [])
    assert victim.wait(60) == -signal.SIGKILL
    assert listener.poll() is None, "what serves the machine outlives a kill of the host"
