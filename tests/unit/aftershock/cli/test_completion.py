"""What a shell is offered for a line that was begun, by the program itself as the shell calls it."""

import os
import subprocess
import sys

import pytest

from experiments import spec
from tests.e2e.example_run import write_run

ASK = """
import os, sys
from aftershock.cli import completion, program
import argcomplete
completion.offer(program.parser())
print("not asked")
"""


def offered(line, home):
    """The words that complete the line; they come through descriptor 8, as argcomplete has it."""
    read, write = os.pipe()
    variables = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    command = ["bash", "-c", f'exec 8>&{write}; exec "$0" -c "$1"', sys.executable, ASK]
    environment = os.environ | variables | {"AFTERSHOCK_HOME": str(home)}
    ran = subprocess.run(command, env=environment, pass_fds=[write], capture_output=True, text=True, timeout=60)
    os.close(write)
    with os.fdopen(read) as answer:
        words = answer.read().split("\n")
    assert (ran.returncode, ran.stdout) == (0, "")
    return [word.strip() for word in words]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("aftershock doc", ["doctor"]),
        ("aftershock benchmark --s", ["--set"]),
        ("aftershock benchmark sustainable-", ["sustainable-q1", "sustainable-wordcount"]),
        ("aftershock plan rep", ["replication"]),
        ("aftershock plan faults twenty-", ["twenty-kills"]),
        ("aftershock completion z", ["zsh"]),
        ("aftershock reproduce utilization/fig-0", ["utilization/fig-04"]),
        ("aftershock reproduce al", ["all"]),
        ("aftershock results publish utilization/fig-0", ["utilization/fig-04"]),
        ("aftershock results compare --matrix nex", ["nexmark"]),
    ],
)
def test_commands_options_and_examples_are_completed(line, words, home):
    found, begun = offered(line, home), line.split()[-1]
    assert set(words) <= set(found)
    assert [word for word in found if word and not word.startswith(begun)] == []


@pytest.mark.parametrize(
    "line", ["recommend", "results export", "results publish", "results compare words-7 --against"]
)
def test_runs_are_completed_by_their_ids(line, home):
    write_run("words-7")
    assert "words-7" in offered(f"aftershock {line} words", home)


@pytest.mark.parametrize(
    ("line", "is_offered"),
    [
        ("results", True),
        ("recommend", True),
        ("results export", True),
        ("results compare a b --against", True),
        ("results recompute", False),
        ("clean", False),
    ],
)
def test_published_runs_are_offered_where_they_can_be_read(line, is_offered, home, tmp_path, monkeypatch):
    monkeypatch.setenv("AFTERSHOCK_PUBLISHED", str(tmp_path / "published"))
    (tmp_path / "published" / "runs" / "words-8").mkdir(parents=True)
    assert ("words-8" in offered(f"aftershock {line} words", home)) == is_offered


def test_every_example_is_offered(home):
    assert set(spec.available()) <= set(offered("aftershock benchmark ", home))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_which_program_to_ask(call, shell):
    code, out, err = call(f"completion {shell}")
    assert (code, err) == (0, "")
    assert "aftershock" in out
    assert "_ARGCOMPLETE" in out


def test_without_a_shell_that_asks_the_command_runs(call, monkeypatch):
    monkeypatch.delenv("_ARGCOMPLETE", raising=False)
    assert call("plan faults nowhere.yaml --seed 1")[0] == 2
