"""Every command line that the documentation shows is one that the program accepts; so are fields set on one.

Lab pages are left out: they say what was run then.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from aftershock.cli.program import parser
from experiments import spec
from experiments.errors import BadInput

ROOT = Path(__file__).parents[3]
LAB = ROOT / "docs" / "lab"
PAGES = [ROOT / "README.md", *sorted(page for page in (ROOT / "docs").rglob("*.md") if LAB not in page.parents)]
IN_CODE = re.compile(r"^ {4,}(?:\.venv/bin/)?aftershock (.*)$", re.MULTILINE)
IN_PROSE = re.compile(r"`(?:\.venv/bin/)?aftershock ([^`]+)`")
YOURS = re.compile(r"\bmy-\w+\.yaml\b|\binventory\.json\b|\bFIELD=VALUE\b|\bNAME\b|…")  # what a reader puts in


def commands(text):
    """The words of each command with arguments, without what a shell does with it; a name alone is no command line."""
    joined = text.replace("\\\n", " ").replace(" N]", " 1]").replace("--budget N", "--budget 1")
    found = [*IN_CODE.findall(joined), *IN_PROSE.findall(joined)]
    lines = [re.split(r"; | > ", line)[0] for line in found]
    return [words for line in lines if len(words := shlex.split(line, comments=True)) > 1]


def refused(words):
    """Why the program does not accept a command line; None if it does."""
    try:
        arguments = parser().parse_args(words)
        if words[0] == "benchmark" and not YOURS.search(" ".join(words)):
            spec.load(arguments.experiment, arguments.overrides)
    except BadInput as error:
        is_mention = "arguments are required" in str(error) and not any(word.startswith("-") for word in words)
        return None if is_mention else str(error)
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_is_accepted(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    found = commands(page.read_text(encoding="utf-8"))
    assert {" ".join(words): why for words in found if (why := refused(words))} == {}


@pytest.mark.parametrize(
    "line",
    [
        "plan fault docs/examples/faults.yaml --seed 1",
        "plan faults docs/examples/faults.yaml --sed 1",
        "benchmark gone",
        "benchmark --set load.rat=5",
        "benchmark wordcount --set engine.recovery=task2",
    ],
)
def test_a_command_that_is_not_accepted_is_noticed(line, monkeypatch):
    monkeypatch.chdir(ROOT)
    for page in (f"Run it:\n\n    .venv/bin/aftershock {line}      # a comment\n", f"Say `aftershock {line}`.\n"):
        (words,) = commands(page)
        assert refused(words)
