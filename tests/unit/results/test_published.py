"""What the repository has published: of this version, whole, small, and nothing in it tells of a machine."""

import hashlib
import re
from pathlib import Path

import pytest

from results import publication
from results.predictions.advised import advise
from results.runs import published, store
from results.runs.store import Run
from results.summary import index
from results.tables.reading import read_table
from results.tables.schema import RUN_TABLES
from results.views import gallery
from results.views.recommended import rows
from results.views.terminal import summary

HERE = Path(__file__).parents[3] / "published"
MOST_BYTES = 15_000_000
RUNS = sorted(path.parent.name for path in HERE.glob(f"runs/*/{published.ABOUT}"))
FIGURES = sorted(
    f"{path.parent.parent.name}/{path.parent.name}" for path in HERE.glob(f"reproductions/*/*/{published.ABOUT}")
)
FILES = sorted(path for path in HERE.rglob("*") if path.is_file() or path.is_symlink())
REMAKE = "`aftershock results recompute RUN_ID`, then `aftershock results publish RUN_ID`, make it again"


@pytest.fixture(autouse=True)
def repository(home, monkeypatch):
    monkeypatch.setenv("AFTERSHOCK_PUBLISHED", str(HERE))


def test_there_are_runs_and_figures():
    assert RUNS
    assert FIGURES


def test_it_is_small():
    assert sum(path.lstat().st_size for path in FILES) < MOST_BYTES


def test_every_file_is_one_of_a_result_as_it_was_published():
    known = set()
    for folder in [*(HERE / "runs" / name for name in RUNS), *(HERE / "reproductions" / name for name in FIGURES)]:
        known.add(folder / published.ABOUT)
        for name, digest in published.read(folder, folder.name).files.items():
            assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, folder / name
            known.add(folder / name)
    assert {path for path in FILES if ".scratch-" not in str(path)} == known


@pytest.mark.parametrize("run_id", RUNS)
def test_a_run_can_be_read(run_id):
    run = store.readable(run_id)
    row = index.row_of(run)
    assert (row.state, row.error) == ("done", None), REMAKE
    assert {name for name in RUN_TABLES if run.has(name)} >= {"runs", "ledger", "verdicts"}
    for name in RUN_TABLES:
        assert not run.has(name) or run.table(name) is not None
    assert _machines_in(run) == set()


def _machines_in(run: Run) -> set[str | None]:
    """What its texts tell of the machine."""
    texts = [path.read_text() for path in run.root.rglob("*.json")]
    for path in run.tables.glob("*.parquet"):
        frame = read_table(path)
        texts += [str(value) for name in frame.columns for value in frame[name].unique() if isinstance(value, str)]
    return {publication.trace_of_machine(text) for text in texts} - {None}


@pytest.mark.parametrize("id", FIGURES)
def test_a_figure_can_be_read(id):
    figure = gallery.published_reproduction(id)
    assert figure is not None
    assert figure.lack is None, REMAKE
    assert figure.verdicts
    assert figure.kinds in (["svg", "csv", "parquet"], ["svg", "parquet"])
    assert len(read_table(figure.file("parquet"))) > 0
    texts = [path.read_text() for path in figure.verdicts_path.parent.iterdir() if path.suffix in (".csv", ".json")]
    assert {publication.trace_of_machine(text) for text in texts} == {None}


def _not_accounted_for(examples: dict[str, str | None], texts: str) -> set[str]:
    """Published runs that are of no example, while no page and no table names them."""
    return {run_id for run_id, example in examples.items() if example is None and run_id not in texts}


def test_a_run_of_no_example_is_named_by_a_page_of_the_lab_or_by_the_table_that_it_is_for():
    examples = {name: published.read(HERE / "runs" / name, name).example for name in RUNS}
    pages = [path.read_text(encoding="utf-8") for path in (HERE.parent / "docs" / "lab").glob("*.md")]
    tables = [path.read_text(encoding="utf-8") for path in HERE.glob("reproductions/*/*/*.csv")]
    assert _not_accounted_for(examples, "\n".join([*pages, *tables])) == set()
    assert _not_accounted_for(examples | {"a-run": None}, "\n".join([*pages, *tables])) == {"a-run"}


@pytest.mark.parametrize("run_id", RUNS)
def test_a_run_has_plots_only_if_it_is_of_an_example(run_id):
    about = published.read(HERE / "runs" / run_id, run_id)
    assert any(name.startswith("plots/") for name in about.files) == (about.example is not None)


def test_no_two_runs_are_of_the_same_example():
    examples = [published.read(HERE / "runs" / name, name).example for name in RUNS]
    named = [example for example in examples if example]
    assert len(named) == len(set(named))


def test_the_sample_of_the_readme_is_what_is_said_of_the_run_that_it_links_to():
    readme = (HERE.parent / "README.md").read_text(encoding="utf-8")
    shown = readme.partition("\n## What you see\n")[2].partition("\n## ")[0]
    sample = [line.strip() for line in shown.splitlines() if line.startswith("    ")]
    run = store.readable(re.findall(r"\(published/runs/([\w-]+)/", readme)[0])
    said = iter([line.strip() for line in summary(run).splitlines()])
    assert [line for line in sample if line not in said] == []  # in this order
    assert len(sample) > 20
    interval, *_ = rows(advise(run))
    assert f"here {interval.likely}" in shown.replace("\n", " ")
