"""The index of decisions has every decision, by its number and its title, and under one subject."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "docs" / "decisions"


def rows(folder):
    """The rows of the index as the pages' own headings would have them."""
    titles = ((page.name, *page.read_text().partition("\n")[0].lstrip("# ").split(". ", 1)) for page in pages(folder))
    return [f"| [{number}]({name}) | {title} |" for name, number, title in titles]


def pages(folder):
    return sorted(page for page in folder.glob("*.md") if page.name != "README.md")


def test_the_index_has_every_decision():
    told = (FOLDER / "README.md").read_text().splitlines()
    assert [line for line in told if line.startswith("| [")] == rows(FOLDER)
    assert [int(page.name[:4]) for page in pages(FOLDER)] == [int(row[3:].split("]")[0]) for row in rows(FOLDER)]


def by_subject(index):
    """The pages in the table of subjects, which ends before the table of numbers."""
    table = index.partition("| subject |")[2].partition("\n\n")[0]
    return sorted(re.findall(r"\[\d+\]\(([^)]+)\)", table))


def test_every_decision_is_under_one_subject():
    assert by_subject((FOLDER / "README.md").read_text()) == [page.name for page in pages(FOLDER)]


def test_a_decision_without_a_subject_is_noticed():
    subjects = "| subject | decisions |\n|---|---|\n| all | [2](0002-b.md), [1](0001-a.md) |\n"
    numbers = "| number | decision |\n|---|---|\n| [3](0003-c.md) | C |\n"
    assert by_subject(f"# Decisions\n\n{subjects}\n{numbers}") == ["0001-a.md", "0002-b.md"]


def test_a_decision_is_told_by_its_heading(tmp_path):
    (tmp_path / "0002-b.md").write_text("# 2. B. C\n\ntext\n")
    (tmp_path / "0001-a.md").write_text("# 1. A\n")
    (tmp_path / "README.md").write_text("# Decisions\n")
    assert rows(tmp_path) == ["| [1](0001-a.md) | A |", "| [2](0002-b.md) | B. C |"]
