"""`aftershock results publish`: what it says, and how it refuses."""

import dataclasses

import pandas as pd
import pytest

from aftershock.airflow import missing_runs
from experiments import spec
from reproductions import catalogue, reproduce


@pytest.fixture(autouse=True)
def published(tmp_path, monkeypatch):
    monkeypatch.setenv("AFTERSHOCK_PUBLISHED", str(tmp_path / "published"))
    return tmp_path / "published"


@pytest.fixture(autouse=True)
def ran(monkeypatch):
    """One entry each time that examples were run, which takes hours."""
    calls = []
    monkeypatch.setattr(missing_runs, "run_examples", lambda: calls.append("all"))
    return calls


def test_a_figure_is_published_and_shown_and_compared(call, as_json, published):
    as_json("reproduce utilization/fig-04")
    told = f"published utilization/fig-04\nwithout a published run: {', '.join(spec.available())}\n"
    assert call("results publish") == (0, told, "")
    found = {"changed": [], "unchanged": ["utilization/fig-04"], "left_out": [], "missing": spec.available()}
    assert as_json("results publish utilization/fig-04") == found
    assert call("results publish utilization/fig-04")[1] == "unchanged utilization/fig-04\n"
    assert (published / "reproductions" / "utilization" / "fig-04" / "utilization-fig-04.svg").is_file()
    assert "✓ beside the published one" in call("reproduce utilization/fig-04")[1]


@pytest.mark.parametrize(
    ("id", "told"),
    [
        ("run-9", "id of a finished run"),
        ("utilization/fig-99", "a table or figure that was reproduced here"),
        ("../x", "a table or figure"),
        ("utilization/fig-04", "a table or figure that was reproduced here"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(call, published, id, told):
    code, out, err = call(f"results publish {id}")
    assert (code, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1
    assert not published.exists()


def test_a_table_of_fewer_runs_than_the_published_one_is_left_out_and_said(call, published, home):
    def table(*runs):
        call("reproduce utilization/fig-04")
        path = home / "reproductions" / "utilization" / "fig-04" / "utilization-fig-04.parquet"
        pd.DataFrame({"run_id": runs}).to_parquet(path, index=False)

    table("a", "b")
    call("results publish")
    table("a")
    code, out, _ = call("results publish")
    assert code == 0
    assert out.startswith("left out utilization/fig-04: the published table is of more runs\n")
    code, out, err = call("results publish utilization/fig-04")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{published}/reproductions/utilization/fig-04 of 2; `aftershock reproduce utilization/fig-04`" in err


def test_published_tables_are_judged_again_only_with_their_ids(call, as_json, ran):
    call("reproduce utilization/fig-04")
    call("results publish utilization/fig-04")
    assert call("results publish --judge-again utilization/fig-04") == (0, "unchanged utilization/fig-04\n", "")
    found = {"changed": [], "unchanged": ["utilization/fig-04"]}
    assert as_json("results publish --judge-again utilization/fig-04") == found
    for words in ("", "utilization/fig-04 --run-missing", "utilization/fig-10", "run-9"):
        code, out, err = call(f"results publish --judge-again {words}")
        assert (code, out, err.count("\n"), ran) == (2, "", 1, []), words


def test_a_table_that_is_judged_otherwise_is_told(call, monkeypatch):
    call("reproduce utilization/fig-04")
    call("results publish utilization/fig-04")
    right = catalogue.CATALOGUE["utilization/fig-04"]
    changed = dataclasses.replace(right, what="told otherwise")
    monkeypatch.setattr(reproduce, "CATALOGUE", {"utilization/fig-04": changed})
    assert call("results publish --judge-again utilization/fig-04")[:2] == (0, "judged again utilization/fig-04\n")


def test_without_results_there_is_nothing_to_publish(call):
    code, out, err = call("results publish")
    assert (code, err) == (0, "")
    assert out.startswith("nothing here to publish\nwithout a published run: ")


def test_examples_are_run_only_if_asked_for_and_without_an_id(call, published, ran):
    call("results publish")
    code, out, err = call("results publish run-9 --run-missing")
    assert (code, out, ran) == (2, "", [])
    assert "--run-missing" in err
    assert not published.exists()
    assert call("results publish --run-missing")[0] == 0
    assert ran == ["all"]
