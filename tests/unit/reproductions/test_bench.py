"""What a bench keeps: whole files, each row once, and only rows that were made as they would be now."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import pandas as pd
import pytest

from experiments.errors import EnvironmentFailure
from experiments.locks import is_free, locked
from reproductions.bench import Bench

pytestmark = pytest.mark.usefixtures("home")

SETTINGS = ("a", "b")


def bench_of(measure=lambda setting, replicate: {"found": 1.0}, **constants):
    return Bench("some", SETTINGS, measure, constants or {"records": 10})


def tell(done, total):
    pass


def test_a_row_of_another_version_is_measured_anew_and_both_are_kept(monkeypatch):
    bench = bench_of()
    monkeypatch.setattr("reproductions.bench.versions", lambda: {"pyarrow": "1"})
    bench.measure_missing(1, tell)
    assert bench.missing(1) == []
    monkeypatch.setattr("reproductions.bench.versions", lambda: {"pyarrow": "2"})
    assert bench.missing(1) == [("a", 1), ("b", 1)]
    bench.measure_missing(1, tell)
    assert len(bench.kept()) == 2
    assert sorted(pd.read_parquet(bench.path)["versions"]) == ['{"pyarrow": "1"}'] * 2 + ['{"pyarrow": "2"}'] * 2


def test_a_row_of_another_constant_is_measured_anew():
    bench_of(records=10).measure_missing(1, tell)
    assert bench_of(records=10).missing(1) == []
    assert len(bench_of(records=20).missing(1)) == 2
    assert bench_of(records=20).kept().empty


def test_a_row_that_does_not_say_what_made_it_does_not_count():
    bench = bench_of()
    bench.measure_missing(1, tell)
    pd.read_parquet(bench.path).drop(columns=["versions", "constants"]).to_parquet(bench.path, index=False)
    assert len(bench.missing(1)) == 2
    bench.measure_missing(1, tell)
    assert bench.missing(1) == []


def test_what_was_kept_survives_a_write_that_is_cut_off(monkeypatch):
    bench = bench_of()
    bench.measure_missing(1, tell)

    def cut_off(frame, path, **_):
        path.write_bytes(b"PAR1 and no more")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pd.DataFrame, "to_parquet", cut_off)
        with pytest.raises(KeyboardInterrupt):
            bench.measure_missing(2, tell)
    assert bench.missing(1) == []
    assert sorted(path.name for path in bench.path.parent.iterdir()) == ["lock", bench.path.name]
    bench.measure_missing(2, tell)
    assert len(bench.kept()) == 4


def cut(content):
    return content[:16]


def overwritten(content):
    """The end of the file is sound, which says where the columns are; the first of them is not."""
    return content[:4] + b"\xff" * 60 + content[64:]


@pytest.mark.parametrize("damage", [cut, overwritten])
def test_a_damaged_file_is_named_with_its_remedy(damage):
    bench = bench_of()
    bench.measure_missing(1, tell)
    bench.path.write_bytes(damage(bench.path.read_bytes()))
    with pytest.raises(EnvironmentFailure, match=r"some\.parquet is damaged.*remove it"):
        bench.missing(1)


def test_what_another_process_measured_while_this_one_waited_is_there_once(monkeypatch):
    measured, others = [], ["another process"]
    bench = bench_of(lambda setting, replicate: {"found": float(len(measured.append(setting) or measured))})

    @contextmanager
    def locked_after_another(path, what):
        if others:
            others.clear()
            replace(bench, settings=SETTINGS[:1]).measure_missing(1, tell)
        with locked(path, what) as descriptor:
            yield descriptor

    monkeypatch.setattr("reproductions.bench.locked", locked_after_another)
    bench.measure_missing(1, tell)
    assert measured == ["a", "b"]
    assert sorted(bench.kept()["setting"]) == ["a", "b"]


def test_one_process_measures_at_a_time_whatever_it_measures():
    """Two at once would slow each other down."""
    free = []
    other = replace(bench_of(), name="other")
    bench = bench_of(
        lambda setting, replicate: {"found": float(free.append(is_free(other.path.with_name("lock"))) or 0)}
    )
    bench.measure_missing(1, tell)
    assert free == [False, False]
    assert is_free(other.path.with_name("lock"))
