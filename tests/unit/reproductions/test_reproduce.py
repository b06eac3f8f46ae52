"""What every reproduction writes and says, and how input that cannot be used is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pandas as pd
import pytest

from experiments.errors import BadInput
from experiments.locks import locked
from experiments.waiting import poll_until
from reproductions import reproduce as module
from reproductions.catalogue import CATALOGUE
from reproductions.reproduce import Reproduced, find, reproduce, teller
from reproductions.reproduction import Progress, Reproduction, ReproductionKind, as_printed, half_unit, holds
from results.checks.rules import NotEnough, between
from results.verdict import Verdict
from tests.unit.interruptions import Interruption, at_every_change
from tests.unit.reproductions.small import SMALL
from tests.unit.reproductions.verdicts import NOTHING

COMPUTED_ROWS = {  # every row of kind C of the list of reproductions
    *(f"utilization/{name}" for name in ("fig-04", "fig-05", "fig-10", "fig-11", "fig-12", "systems")),
    *(f"utilization/fig-{number}" for number in (13, 14, 15, 16)),
    *(f"checkmate/{name}" for name in ("table-1", "fig-04", "fig-05")),
    *(f"ppa/{name}" for name in ("examples", "fig-14a", "fig-14b", "fig-14c", "fig-14d")),
    *(f"incremental/{name}" for name in ("fig-02", "fig-16a", "fig-16b", "fig-16c")),
}
MEASURED_ROWS = {
    "utilization/table-1",
    *(f"checkmate/table-{number}" for number in (2, 3, 4)),
    *(f"checkmate/fig-{number}" for number in ("07", "08", "09", "10", "11", "12a", "12b", "13")),
    "checkmate/staggered",
    *(f"ppa/fig-{number:02}" for number in (*range(7, 11), 12, 13)),
    *(f"cec/fig-{number:02}" for number in range(5, 10)),
    *(f"incremental/fig-{number:02}" for number in (7, *range(10, 16), 18, 19, 20)),
}
TABLES = sorted(COMPUTED_ROWS)


def test_the_catalogue_has_every_row_of_its_kind():
    of_kind = {kind: {id for id, found in CATALOGUE.items() if found.kind == kind} for kind in ReproductionKind}
    assert of_kind == {"C": COMPUTED_ROWS, "M": MEASURED_ROWS}
    assert all(found.id == id and found.checks for id, found in CATALOGUE.items())
    assert {found.paper for found in CATALOGUE.values()} == {"utilization", "checkmate", "ppa", "cec", "incremental"}


@pytest.mark.extended
@pytest.mark.parametrize("id", TABLES)
def test_a_reproduction_writes_a_table_a_plot_and_verdicts(id, tmp_path):
    found = reproduce(id, tmp_path, SMALL.get(id))
    assert set(found.files) == {"parquet", "csv", "png", "svg", "verdicts"}
    table, text = pd.read_parquet(found.files["parquet"]), pd.read_csv(found.files["csv"])
    assert len(table) == len(text) > 0
    assert list(table.columns) == list(text.columns)
    assert not table.select_dtypes("number").isin([float("inf"), float("-inf")]).any(axis=None)
    assert found.files["png"].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in found.files["svg"].read_text()
    assert json.loads(found.files["verdicts"].read_text()) == found.document()
    named = {check.name: check.plant.what for check in CATALOGUE[id].checks}
    assert {row["check"]: row["notices"] for row in found.verdicts} == named
    _assert_verdicts(id, found, table)


def _assert_verdicts(id: str, found: Reproduced, table: pd.DataFrame) -> None:
    """All pass but for those that say why they fail; few random problems need only have a verdict."""
    if id in SMALL:
        assert {row["verdict"] for row in found.verdicts} <= {"pass", "fail"}
        return
    known = {check.name for check in CATALOGUE[id].checks if check.fails}
    assert {row["check"] for row in found.verdicts if row["verdict"] != "pass"} == known
    assert all(("fails, as known: " in row["expected"]) == (row["check"] in known) for row in found.verdicts)


def test_what_fails_although_nothing_is_wrong_here():
    """A slip, a claim that lacks its limits, an algorithm as printed, other queries, trends of a lost generator."""
    known = {(id, check.name) for id, found in CATALOGUE.items() for check in found.checks if check.fails}
    assert known == {
        ("utilization/systems", "gain.at_0.135_per_hour"),
        ("utilization/fig-13", "gain.falls_with_cost"),
        *((f"ppa/fig-14{panel}", "as_printed.above_greedy") for panel in "abcd"),
        *(("ppa/fig-12", f"{metric}.tracks_accuracy.q1_spread") for metric in ("fidelity", "completeness")),
        *(("ppa/fig-13", f"greedy.{column}_worst.q2") for column in ("output_fidelity", "accuracy")),
        ("incremental/fig-16a", "sharing.costs_operator_centric"),
        ("incremental/fig-16b", "skew.helps_best_density"),
        ("incremental/fig-16b", "skew.costs_operator_centric"),
    }


def test_verdicts_are_the_worst_of_the_checks():
    def of(*verdicts: str) -> Verdict:
        return Reproduced(find("utilization/fig-04"), None, [{"verdict": each} for each in verdicts], {}).verdict

    assert of("pass", "pass") is Verdict.PASS
    assert of("pass", "unknown") is Verdict.UNKNOWN
    assert of("unknown", "fail", "pass") is Verdict.FAIL


def test_without_a_folder_it_goes_below_the_home(home):
    found = reproduce("checkmate/fig-09")
    assert found.files["verdicts"].parent == home / "reproductions" / "checkmate" / "fig-09"
    assert found.files["verdicts"].exists()


@pytest.mark.extended
def test_the_same_folder_can_be_used_again_and_by_others(tmp_path):
    (tmp_path / "mine.txt").write_text("kept")
    for _ in range(2):
        reproduce("utilization/fig-14", tmp_path)
    reproduce("utilization/fig-10", tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"mine.txt", "utilization-fig-14.parquet", "utilization-fig-10.parquet"} <= names


TINY = "utilization/fig-14"


def tiny(value: float | None) -> Reproduction:
    """A figure that takes no time, whose check tells its only value; without a value it has no table."""

    def compute(size: int, tell: Progress) -> pd.DataFrame:
        if value is None:
            raise NotEnough("nothing was measured")
        return pd.DataFrame({"value": [value]})

    check = holds(
        "it", lambda rows: rows, [between("value", 0, 1)], lambda rows: str(rows["value"].iat[0]), "", NOTHING
    )
    return replace(find(TINY), checks=(check,), compute=compute)


@pytest.fixture
def remake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float | None], Reproduced]:
    """Makes the tiny figure with another value, in the folder `out`."""

    def write_plots(folder: Path, name: str, draw: object) -> None:
        for kind in ("png", "svg"):
            (folder / f"{name}.{kind}").write_text("a plot")

    def made(value: float | None) -> Reproduced:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "CATALOGUE", {TINY: tiny(value)})
            return reproduce(TINY, tmp_path / "out")

    monkeypatch.setattr(module, "write_figure", write_plots)
    return made


def told_and_there(folder: Path) -> tuple[str | None, set[str]]:
    """The value that the verdicts tell, if there are any, and those that the files of the table have."""
    verdicts, table, text = (folder / f"utilization-fig-14.{kind}" for kind in ("verdicts.json", "parquet", "csv"))
    told = json.loads(verdicts.read_text())["verdicts"][0]["observed"] if verdicts.exists() else None
    there = {str(pd.read_parquet(table)["value"].iat[0])} if table.exists() else {"no table"}
    return told, there | ({str(pd.read_csv(text)["value"].iat[0])} if text.exists() else {"no text"})


def seen_after_strikes(remake: Callable[[float | None], Reproduced], folder: Path) -> list[tuple[str | None, set[str]]]:
    """What is there after a kill at each change that a second reproduction makes."""
    remake(0.25)
    seen = []
    for _ in at_every_change(lambda: remake(0.75), folder, Interruption.KILL):
        seen.append(told_and_there(folder))
        remake(0.25)
    return seen


def test_a_reproduction_that_is_killed_anywhere_leaves_no_verdicts_without_their_table(remake, tmp_path):
    seen = seen_after_strikes(remake, tmp_path / "out")
    assert {told for told, _ in seen} == {"0.25", None, "0.75"}
    assert [(told, there) for told, there in seen if told is not None and there != {told}] == []


def test_files_that_change_in_any_order_are_noticed(remake, tmp_path, monkeypatch):
    def publish(scratch: Path, folder: Path, reproduction: Reproduction) -> None:
        for path in sorted(folder.glob(f"{reproduction.name}.*")):
            path.unlink()
        for path in sorted(scratch.iterdir()):
            path.rename(folder / path.name)

    monkeypatch.setattr(module, "_publish", publish)
    assert ("0.25", {"no table", "no text"}) in seen_after_strikes(remake, tmp_path / "out")


def test_a_table_is_replaced_only_once_another_process_has_written_the_same_one(remake, tmp_path, caplog):
    folder = tmp_path / "out"
    remake(0.25)
    other = Thread(target=remake, args=(0.75,))
    with locked(folder / ".utilization-fig-14.lock", "a test", stays=False):
        other.start()
        assert poll_until(lambda: "waiting for" in caplog.text, interval_s=0.01, limit_s=60.0)
        assert told_and_there(folder) == ("0.25", {"0.25"})
    other.join()
    assert told_and_there(folder) == ("0.75", {"0.75"})


def test_without_a_new_table_the_earlier_one_stays_with_its_verdicts(remake, tmp_path):
    """As when its runs are gone."""
    remake(0.25)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    found = remake(None)
    assert (found.verdict, found.verdicts[0]["detail"], found.files) == ("unknown", "nothing was measured", {})
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_an_earlier_table_that_lost_its_verdicts_is_judged_again_if_its_runs_are_gone(remake, tmp_path):
    """It stays as it is. How it was made was told with the verdicts, and is told no more."""
    folder = tmp_path / "out"
    remake(0.25)
    verdicts = folder / "utilization-fig-14.verdicts.json"
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path != verdicts}
    verdicts.unlink()
    found = remake(None)
    assert found.is_judged_again
    assert [(row["verdict"], row["observed"]) for row in found.verdicts] == [("pass", "0.25")]
    assert set(found.files) == {"parquet", "csv", "png", "svg", "verdicts"}
    written = json.loads(verdicts.read_text())
    assert written == found.document()
    assert {"command", "machine", "versions"}.isdisjoint(written)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path != verdicts} == before


def test_an_earlier_table_without_verdicts_that_cannot_be_read_is_removed(remake, tmp_path):
    folder = tmp_path / "out"
    remake(0.25)
    (folder / "utilization-fig-14.verdicts.json").unlink()
    (folder / "utilization-fig-14.parquet").write_text("no table")
    found = remake(None)
    assert (found.verdict, found.verdicts[0]["detail"]) == ("unknown", "nothing was measured")
    assert [path.name for path in folder.iterdir()] == ["utilization-fig-14.verdicts.json"]


def test_without_any_table_the_verdicts_say_why(remake, tmp_path):
    for _ in range(2):
        assert list(remake(None).files) == ["verdicts"]
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["utilization-fig-14.verdicts.json"]
    assert set(remake(0.25).files) == {"parquet", "csv", "png", "svg", "verdicts"}


@pytest.mark.parametrize(
    ("id", "size", "field"),
    [
        ("utilization/fig-99", None, "id"),
        ("", None, "id"),
        ("cec/fig-10", None, "id"),
        ("checkmate/fig-08", 0, "size"),
        ("utilization/fig-04", 3, "size"),
        ("utilization/fig-05", 0, "size"),
        ("utilization/fig-05", 19, "size"),
        ("utilization/fig-05", -1, "size"),
    ],
)
def test_bad_input_names_the_field_and_writes_nothing(id: str, size: int | None, field: str, tmp_path: Path):
    with pytest.raises(BadInput) as caught:
        reproduce(id, tmp_path / "out", size)
    assert caught.value.field == field
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("printed", "expected"), [("46.452", 0.0005), (".7541", 0.00005), ("2.4", 0.05), ("16", 0.5)])
def test_half_a_unit_of_the_last_printed_digit(printed, expected):
    assert half_unit(printed) == pytest.approx(expected)


@pytest.mark.extended
@pytest.mark.parametrize(("ours", "verdict"), [(2.3501, "pass"), (2.4499, "pass"), (2.349, "fail"), (2.46, "fail")])
def test_a_figure_as_printed_must_round_to_it(ours, verdict, tmp_path, monkeypatch):
    check = as_printed("it", "2.4", "%", lambda table: table["depth"].iat[0], NOTHING)
    curve = find("utilization/fig-04")
    example = replace(
        find("utilization/fig-14"),
        checks=(check,),
        compute=lambda size, tell: pd.DataFrame({"depth": [ours]}),
        plot=lambda table: curve.plot(curve.compute(1, tell)),
    )
    monkeypatch.setattr(module, "CATALOGUE", {"example": example})
    tell = teller("example")
    found = reproduce("example", tmp_path)
    assert found.verdict == verdict
    assert found.verdicts[0]["expected"] == "2.4 % (printed)"


def test_progress_goes_to_standard_error_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr(module.time, "monotonic", iter([0.0, 1.0, 6.0, 6.0, 7.0]).__next__)
    tell = teller("some/id")
    for done in (1, 2, 3):
        tell(done, 10)
    out, err = capsys.readouterr()
    assert (out, err) == ("", "some/id: 2 of 10\n")
