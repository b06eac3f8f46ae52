"""A new table beside the published one: equal where computed, within the limits of both where measured."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from reproductions import reproduce as module
from reproductions.beside_published import beside_published
from reproductions.catalogue import CATALOGUE
from reproductions.claims import Ratio, at_least, mean_ratio
from reproductions.reproduce import reproduce
from reproductions.reproduction import Reproduction, ReproductionCheck, holds
from results.checks.rules import between
from results.publication import publish_results
from results.runs.store import write_json
from tests.unit.reproductions.verdicts import NOTHING

FIGURE = "utilization/fig-04"
COLUMNS = ("what", "ratio", "low", "high")


@pytest.fixture(autouse=True)
def publications(home, tmp_path, monkeypatch):
    """An empty folder of what is published, beside the home."""
    monkeypatch.setenv("AFTERSHOCK_PUBLISHED", str(tmp_path / "published"))


def compared(reproduction: Reproduction, old: pd.DataFrame, new: pd.DataFrame, folder, sizes=(None, None)):
    """Publish the old table, and hold the new one against it."""
    name = reproduction.name
    place = folder / "published" / "reproductions" / reproduction.paper / reproduction.id.split("/")[1]
    place.mkdir(parents=True)
    old.to_parquet(place / f"{name}.parquet", index=False)
    about = {"what": "it", "kind": reproduction.kind.value, "size": sizes[0], "verdict": "pass", "verdicts": []}
    write_json(place / f"{name}.verdicts.json", about)
    made = {"command": "aftershock reproduce x", "machine": "m", "versions": {}, "versions_of": "result"}
    write_json(place / "published.json", {"format": 1, "files": {}} | made)
    new.to_parquet(folder / f"{name}.parquet", index=False)
    return beside_published(reproduction, sizes[1], folder)


def computed(*checks: ReproductionCheck) -> Reproduction:
    return Reproduction("p/f", "it", lambda size, tell: pd.DataFrame(), lambda table: None, checks)


def measured(*checks: ReproductionCheck) -> Reproduction:
    return Reproduction(
        "p/f", "it", lambda size, tell: pd.DataFrame(), lambda table: None, checks, needs=lambda size: []
    )


def test_where_nothing_was_published_nothing_is_said():
    assert reproduce(FIGURE).published is None


def test_a_computed_table_is_equal_to_itself_and_not_to_one_with_another_figure(monkeypatch):
    reproduce(FIGURE)
    publish_results([FIGURE])
    again = reproduce(FIGURE)
    assert again.published["verdict"] == "pass"
    assert again.document()["published"] == again.published
    right = CATALOGUE[FIGURE]

    def almost(size, tell):
        table = right.compute(size, tell)
        return table.assign(utilization=table["utilization"] * (1 + 1e-8))

    spoiled = replace(right, compute=almost)
    monkeypatch.setattr(module, "CATALOGUE", {FIGURE: spoiled})
    found = reproduce(FIGURE)
    assert (found.published["verdict"], found.verdict) == ("fail", "pass")  # it says nothing about the paper


TABLE = pd.DataFrame({"n": [1, 2], "u": [0.5, None], "why": ["rounds", None]})


@pytest.mark.parametrize(
    ("new", "verdict", "told"),
    [
        (TABLE, "pass", "all 2 rows are equal"),
        (TABLE.assign(u=[0.5 * (1 + 1e-12), None]), "pass", "all 2"),
        (TABLE.assign(u=[0.5 * (1 + 1e-7), None]), "fail", "1 of 2 rows differ: u of row 0"),
        (TABLE.assign(u=[0.5, 0.1]), "fail", "u of row 1 is 0.1, published nan"),
        (TABLE.assign(n=[1, 3]), "fail", "n of row 1 is 3, published 2"),
        (TABLE.assign(why=["rounds", "not"]), "fail", "why of row 1"),
        (TABLE.head(1), "fail", "1 rows of 3 columns"),
        (TABLE.rename(columns={"u": "v"}), "fail", "rows of 3 columns"),
    ],
)
def test_computed_tables_are_equal_but_for_last_digits(new, verdict, told, tmp_path):
    found = compared(computed(), TABLE, new, tmp_path)
    assert found["verdict"] == verdict
    assert told in found["observed"]


@pytest.mark.parametrize(("new", "verdict"), [([1, None], "pass"), ([1, 2], "fail"), ([None, None], "fail")])
def test_a_whole_number_that_only_one_table_has_makes_them_differ(new, verdict, tmp_path):
    old, whole = pd.DataFrame({"n": pd.array([1, None], dtype="Int64")}), pd.array(new, dtype="Int64")
    assert compared(computed(), old, pd.DataFrame({"n": whole}), tmp_path)["verdict"] == verdict


@pytest.mark.parametrize(("off", "verdict"), [(2e-8, "pass"), (1e-6, "fail")])
def test_a_place_found_by_a_search_is_less_exact_than_other_figures(off, verdict, tmp_path):
    found = compared(replace(computed(), searched=frozenset({"u"})), TABLE, TABLE.assign(u=TABLE["u"] + off), tmp_path)
    assert found["verdict"] == verdict


@pytest.mark.parametrize(("size", "told"), [(10, "10"), (None, "a size that is not known")])
def test_tables_of_different_sizes_are_not_compared(size, told, tmp_path):
    found = compared(computed(), TABLE, TABLE, tmp_path, sizes=(100, size))
    assert found["verdict"] == "unknown"
    assert found["detail"] == f"the published table is of size 100, this one of {told}"


def ratios(*rows):
    return pd.DataFrame(rows, columns=COLUMNS)


RATIO = at_least("ratio", lambda table: [Ratio(*row) for row in table.itertuples(index=False)], 1.0, "1", NOTHING)
OLD = ratios(("q1", 2.0, 1.6, 2.5), ("q3", 4.0, 3.2, 5.0))


@pytest.mark.parametrize(
    ("new", "verdict", "told"),
    [
        (OLD, "pass", "1 of 1 checks agree"),
        (ratios(("q1", 2.6, 2.08, 3.25), ("q3", 4.0, 3.2, 5.0)), "pass", "1 of 1"),  # their limits together: 1.37 times
        (
            ratios(("q1", 2.8, 2.24, 3.5), ("q3", 4.0, 3.2, 5.0)),
            "fail",
            "ratio: q1 2.80 (2.24 to 3.50), published 2.00",
        ),
        (ratios(("q1", 2.0, 1.6, 2.5), ("q3", 9.0, 8.9, 9.1)), "fail", "ratio: q3 9.00"),
        (ratios(("q1", 1.1, 0.9, 1.3)), "unknown", None),  # undecided
    ],
)
def test_measured_ratios_are_as_likely(new, verdict, told, tmp_path):
    found = compared(measured(RATIO), OLD, new, tmp_path)
    assert found["verdict"] == verdict
    assert (found["observed"] is None) if told is None else (told in found["observed"])


def ratios_of_pairs(table: pd.DataFrame) -> list[Ratio]:
    groups = table.groupby("what", sort=False)
    return [mean_ratio(what, zip(rows["over"], rows["under"], strict=True)) for what, rows in groups]


PAIRS = at_least("pairs", ratios_of_pairs, 0.01, ".01", NOTHING)


def pairs(count: int, first: float) -> pd.DataFrame:
    """So many ratios of three pairs each, all about 1 but the first."""
    logs = [(number, log + (0.0 if number else math.log(first))) for number in range(count) for log in (-0.1, 0.0, 0.1)]
    return pd.DataFrame([{"what": f"ratio {number}", "over": math.exp(log), "under": 1.0} for number, log in logs])


@pytest.mark.parametrize(("count", "first", "verdict"), [(1, 2.7, "fail"), (24, 2.7, "pass"), (24, 10.0, "fail")])
def test_the_more_ratios_there_are_the_farther_one_of_them_may_be_by_chance(count, first, verdict, tmp_path):
    """Simulated, limits of 95 % each would fail a fourth of the tables with 24 sound ratios of three pairs."""
    assert compared(measured(PAIRS), pairs(count, 1.0), pairs(count, first), tmp_path)["verdict"] == verdict


def test_a_check_without_limits_has_only_its_verdict_to_compare(tmp_path):
    few = holds("few", lambda t: t, [between("share", None, 5)], lambda t: "", "at most 5", NOTHING)
    found = compared(measured(few), pd.DataFrame({"share": [1.0]}), pd.DataFrame({"share": [4.0]}), tmp_path)
    assert found["verdict"] == "pass"


FEW = holds("few", lambda t: t[["share"]], [between("share", None, 5)], lambda t: "", "at most 5", NOTHING)
RISES = holds("rises", lambda t: t[["rise"]], [between("rise", 0, None)], lambda t: "", "at least 0", NOTHING)


def test_a_published_table_that_lacks_a_column_is_undecided_and_says_so(tmp_path):
    """As a table of before the column."""
    new = pd.DataFrame({"share": [4.0]})
    found = compared(measured(FEW), new.rename(columns={"share": "portion"}), new, tmp_path)
    assert (found["verdict"], found["observed"]) == ("unknown", None)
    assert found["detail"].startswith(
        "no check is decided in both; few of the published table: the table lacks a column"
    )
    assert "share" in found["detail"]


def test_a_column_that_one_check_needs_is_nothing_to_the_others(tmp_path):
    new = pd.DataFrame({"share": [4.0], "rise": [1.0]})
    found = compared(measured(FEW, RISES), new[["share"]], new, tmp_path)
    assert (found["verdict"], found["observed"]) == ("pass", "1 of 2 checks agree, the others are undecided")
    assert found["detail"].startswith("rises of the published table: the table lacks a column")


def test_ratios_of_which_none_is_in_both_tables_are_not_compared(tmp_path):
    found = compared(measured(RATIO), OLD, OLD.assign(what=["q8", "q12"]), tmp_path)
    assert found["verdict"] == "unknown"
    assert found["detail"].endswith("ratio: the two tables have no ratio in common")


@pytest.mark.parametrize(
    ("runs", "share", "verdict", "detail"),
    [
        (["a", "b"], [1.0, 1.0], "unknown", "made of the same runs"),
        (["b", None], [1.0, None], "unknown", "made of the same runs"),
        (["a", "c"], [9.0, 1.0], "pass", None),  # the run in both would fail
        (["a", "c"], [1.0, 9.0], "fail", None),
        (["c", "d"], [1.0, 1.0], "pass", None),
    ],
)
def test_runs_that_are_in_both_tables_are_left_out(runs, share, verdict, detail, tmp_path):
    old = pd.DataFrame({"run_id": ["a", "b"], "share": [1.0, 1.0]})
    found = compared(measured(FEW), old, pd.DataFrame({"run_id": runs, "share": share}), tmp_path)
    assert (found["verdict"], found["detail"]) == (verdict, detail)


def test_measured_tables_of_different_sizes_are_compared(tmp_path):
    """The limits know of how many runs they are."""
    assert compared(measured(RATIO), OLD, OLD, tmp_path, sizes=(1, 3))["verdict"] == "pass"


def test_a_check_that_passed_and_fails_now_is_told(tmp_path):
    few = holds("few", lambda t: t, [between("share", None, 5)], lambda t: "", "at most 5", NOTHING)
    found = compared(measured(few), pd.DataFrame({"share": [1.0]}), pd.DataFrame({"share": [6.0]}), tmp_path)
    assert (found["verdict"], found["observed"]) == ("fail", "few: fail, published pass")


def test_a_published_table_that_is_damaged_or_outdated_leaves_it_unknown(tmp_path):
    reproduce(FIGURE)
    publish_results([FIGURE])
    folder = tmp_path / "published" / "reproductions" / FIGURE
    (folder / "utilization-fig-04.parquet").write_bytes(b"PAR1")
    found = reproduce(FIGURE)
    assert found.published["verdict"] == "unknown"
    assert found.verdict == "pass"
    (folder / "published.json").write_text('{"format": 99}')
    assert "format 99" in reproduce(FIGURE).published["detail"]
