"""Pages over damaged files: none fails, and what is whole is shown beside what is said to be damaged."""

from __future__ import annotations

import os
from random import Random

import pytest
from fastapi.testclient import TestClient

from results import store
from tests.e2e.example_run import REGRESSION, write_regression
from tests.unit.results.damaging import Damage, make_store

INPUTS = int(os.environ.get("AFTERSHOCK_FUZZ_INPUTS", "1000")) // 25
OTHER = "regression-20260922-060000-abcd"
PAGES = (
    "",
    "history",
    "regressions",
    "compare?run=victim&run=whole",
    "compare.json?run=victim&run=whole",
    "dag-runs/x",
)
OF_THE_RUN = ("runs/victim", "runs/victim/charts.json", "runs/victim/tables/{table}.csv", f"regressions/{REGRESSION}")


def test_no_page_fails_and_the_whole_run_is_listed(browser: TestClient):
    victim, _, folder = make_store()
    random = Random(0)
    files = [victim.root / "status.json", victim.experiment_path, *victim.tables.iterdir(), *folder.iterdir()]
    for number in range(INPUTS):
        path = random.choice(sorted(files))
        with Damage(path, random) as way:
            (store.home() / "runs-index.json").unlink(missing_ok=True)
            told = f"input {number}: {path.name}, {way}"
            found = {page: browser.get(f"/aftershock/{page}") for page in PAGES}
            assert {answer.status_code for answer in found.values()} <= {200, 404}, told
            assert "runs/whole" in found[""].text, told
            for page in OF_THE_RUN:
                status = browser.get(f"/aftershock/{page.format(table=path.stem)}").status_code
                assert status in (200, 404, 500), told  # 500 with a page that says what is damaged, never an error


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, '{"recorded_ns": "soon"}', "\udcff"])
def test_a_damaged_comparison_is_said_and_the_others_are_listed(browser: TestClient, text: str):
    write_regression()
    folder = store.home() / "regressions" / OTHER
    folder.mkdir()
    (folder / "regression.json").write_bytes(text.encode(errors="surrogateescape"))
    page = browser.get("/aftershock/regressions").text
    assert f'href="/aftershock/regressions/{REGRESSION}"' in page
    assert f"regression.json of {OTHER} is damaged" in page
    answer = browser.get(f"/aftershock/regressions/{OTHER}")
    assert answer.status_code == 500
    assert f"regression.json of {OTHER} is damaged" in answer.text
