"""Every file and test that a page names is there, wherever code has moved."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LAB = ROOT / "docs" / "lab"
PAGES = [ROOT / "README.md", *sorted(page for page in (ROOT / "docs").rglob("*.md") if LAB not in page.parents)]
MADE = {line.strip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()}  # by tests or runs
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")} - MADE
CODE = re.compile(r"^```[\s\S]*?^```|(?<=\n\n)(?: {4}.*\n)+", re.MULTILINE)
WORD = re.compile(r"(?<![\w./~$-])[\w./-]*\w/?(?![\w/*{])")


@cache
def all_tests():
    """The text of all files with tests, which not every process that imports this one needs."""
    return "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))


def missing(text):
    """The files, folders and tests in backquotes or in code that are not there; a name in capitals stands for any."""
    named = set(re.findall(r"`([\w./-]+)`", text))
    named |= {name for block in CODE.findall(text) for name in WORD.findall(block)}
    paths = {
        name for name in named if name.partition("/")[0] in FOLDERS and "/" in name and not re.search("[A-Z]{3}", name)
    }
    files = {name for name in named if re.fullmatch(r"test_\w+\.py", name)}
    tests = {name for name in named if re.fullmatch(r"test_\w+", name)}
    found = {path for path in paths if not (ROOT / path).exists()}
    found |= {name for name in files if not any((ROOT / "tests").rglob(name))}
    return sorted(found | {name for name in tests if f"def {name}(" not in all_tests()})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page):
    assert missing(page.read_text(encoding="utf-8")) == []


def test_what_is_not_there_is_noticed():
    named = ("infra/gone.py", "models/gone/", "test_gone.py", "test_that_is_gone")
    there = (
        "infra/remote/agent.py",
        "models/replay/",
        "test_links.py",
        "test_what_is_not_there_is_noticed",
        "tests/fuzz/fuzz_NAME.py",
    )
    assert missing(" ".join(f"`{name}`" for name in (*named, *there))) == sorted(named)
    block = "cat infra/gone.py models/replay/ > models/gone.py\nls results/runs/*.json ~/tests/any /home/tests/any"
    for code in (f"```sh\n{block}\n```", "Text:\n\n" + "".join(f"    {line}\n" for line in block.splitlines())):
        assert missing(code) == ["infra/gone.py", "models/gone.py"]
