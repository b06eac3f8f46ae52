"""A damaged comparison is said to be, and the others are listed; tests/fuzz/fuzz_damaged_pages.py has more."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from results.runs import store
from tests.e2e.example_run import REGRESSION, write_regression, write_run

OTHER = "regression-20260922-060000-abcd"


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


def test_when_a_run_with_a_damaged_status_started_is_not_known(browser: TestClient):
    run = write_run("one")
    (run.root / "status.json").write_text("{}")
    for address in ("/aftershock/", "/aftershock/runs/one"):
        page = browser.get(address).text
        assert "unreadable" in page
        assert "1970" not in page
