"""The page of the papers names files that there are, and what they define; every algorithm of a paper is on it."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "papers.md").read_text(encoding="utf-8")
ALGORITHMS = {"checkmate": 1, "ppa": 5, "incremental": 4}  # how many each paper numbers
DEFINITIONS = ast.ClassDef | ast.FunctionDef


def rows(page):
    """Of each row of the tables: what stands in the paper, the file, and the names in it."""
    found = re.findall(r"^\| ([^|]+) \| `([\w/]+\.py)` \| ([^|]+) \|$", page, re.MULTILINE)
    return [(told, file, re.findall(r"`([\w.]+)`", names)) for told, file, names in found]


ROWS = rows(PAGE)


@cache
def tree(file):
    path = ROOT / file
    return ast.parse(path.read_bytes()) if path.is_file() else None


def is_defined(file, name):
    """Whether a module defines a function or class, or a class of it a method."""
    found = tree(file)
    for part in name.split("."):
        inside = found.body if found else []
        found = next((node for node in inside if isinstance(node, DEFINITIONS) and node.name == part), None)
    return found is not None


@pytest.mark.parametrize(("told", "file", "names"), ROWS, ids=[f"{file}: {told}" for told, file, _ in ROWS])
def test_a_file_defines_what_the_page_says(told, file, names):
    assert names, told
    assert [name for name in names if not is_defined(file, name)] == []


@pytest.mark.parametrize("name", ["Scorer.gone", "gone", "score.completeness"])
def test_a_name_that_is_not_defined_is_noticed(name):
    assert is_defined("models/fidelity.py", "Scorer.completeness")
    assert not is_defined("models/fidelity.py", name)
    assert not is_defined("models/gone.py", "score")


@pytest.mark.parametrize("paper", ALGORITHMS)
def test_every_algorithm_of_a_paper_is_on_the_page(paper):
    section = PAGE.partition(f"\n## `{paper}`\n")[2].partition("\n## ")[0]
    told = {int(number) for number in re.findall(r"algorithm (\d)", section)}
    assert told == set(range(1, ALGORITHMS[paper] + 1))
