"""What README and docs show as a command or an example works as it stands there."""

import json
from pathlib import Path

import pytest

from aftershock.cli import main
from experiments import matrix

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("## Asking the models")[2].partition("\n## ")[0]
COMMANDS = [line.split()[1:] for line in SECTION.splitlines() if line.strip().startswith(".venv/bin/aftershock")]


def indented(text):
    """The lines of a page that stand apart, commands excepted."""
    return [line[4:] for line in text.splitlines() if line.startswith("    ") and ".venv" not in line]


def test_the_section_has_every_model():
    assert {tuple(words[:2]) for words in COMMANDS} == {
        ("predict", "utilization"),
        ("predict", "fidelity"),
        ("simulate", "utilization"),
        ("plan", "replication"),
        ("plan", "recovery"),
        ("plan", "faults"),
    }


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_documented_command_works(words, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
    assert main(words) == 0
    assert capsys.readouterr().out


def test_the_documents_shown_are_the_example_files():
    faults, topology = (ROOT / "docs" / "examples" / name for name in ("faults.yaml", "topology.json"))
    assert indented(SECTION) == faults.read_text(encoding="utf-8").splitlines()
    page = (ROOT / "docs" / "reference" / "topologies.md").read_text(encoding="utf-8")
    assert indented(page) == topology.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("page", "section", "example"),
    [("nightly.md", "## The matrix", "matrix.yaml"), ("airflow.md", "## Notifications", "airflow_local_settings.py")],
)
def test_an_example_is_shown_as_it_is(page, section, example):
    shown = (ROOT / "docs" / page).read_text(encoding="utf-8").partition(section)[2].partition("\n## ")[0]
    lines = (ROOT / "docs" / "examples" / example).read_text(encoding="utf-8").splitlines()
    assert indented(shown) == list(filter(None, lines))


def test_the_matrix_shown_can_be_run():
    found = matrix.load(str(ROOT / "docs" / "examples" / "matrix.yaml"))
    assert len(found) == 12
    assert "bids-batches-task-kills" in {experiment.name for experiment in found}
