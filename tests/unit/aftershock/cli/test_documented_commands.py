"""What docs show as a command or an example works as it stands there."""

import json
from pathlib import Path

import pytest

from aftershock.cli.program import main
from experiments import matrix
from tests.unit.docs.fences import fenced

ROOT = Path(__file__).parents[4]
MODELS = (ROOT / "docs" / "reference" / "models.md").read_text(encoding="utf-8")
SECTION = MODELS.partition("## Ask the models")[2].partition("\n## ")[0]
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
    assert fenced(SECTION, "yaml") == [faults.read_text(encoding="utf-8").splitlines()]
    page = (ROOT / "docs" / "reference" / "topologies.md").read_text(encoding="utf-8")
    assert indented(page) == topology.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("page", "language", "examples"),
    [
        ("nightly.md", "yaml", ["matrix.yaml", "own-job/matrix.yaml"]),
        ("airflow.md", "python", ["airflow_local_settings.py"]),
    ],
)
def test_examples_are_shown_as_they_are(page, language, examples):
    text = (ROOT / "docs" / "guides" / page).read_text(encoding="utf-8")
    files = [(ROOT / "docs" / "examples" / example).read_text(encoding="utf-8") for example in examples]
    assert fenced(text, language) == [file.splitlines() for file in files]


def test_the_matrix_shown_can_be_run():
    found = matrix.load(str(ROOT / "docs" / "examples" / "matrix.yaml"))
    assert len(found) == 12
    assert "bids-batches-task-kills" in {experiment.name for experiment in found}


def test_the_matrix_of_an_own_job_can_be_run():
    found = matrix.load(str(ROOT / "docs" / "examples" / "own-job" / "matrix.yaml"))
    assert {(experiment.name, experiment.seed) for experiment in found} == {
        (f"orders-spark-task-{faults}", seed) for faults in ("none", "kills") for seed in (3, 9)
    }
