"""Pages over damaged files: none fails, and what is whole is shown beside what is said to be damaged."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from results.regression.records import DOCUMENT
from results.runs import store
from tests.fuzz.damaging import REGRESSION, Damage, files_of, make_store
from tests.fuzz.session import Fuzzer, Session
from tests.fuzz.temporary_home import temporary_home

if TYPE_CHECKING:
    from fastapi.testclient import TestClient

LIST = "/aftershock/"
BOTH = "run=victim&run=whole"
RUN, COMPARISON = "runs/victim", f"regressions/{REGRESSION}"
OF_RUNS = ("history", f"compare?{BOTH}", f"compare.json?{BOTH}", "dag-runs/x", f"{RUN}/charts.json")
OF_TABLES = (*OF_RUNS, RUN + "/tables/{table}.csv")
MAY_FAIL = (f"{RUN}/charts.json", RUN + "/tables/{table}.csv", COMPARISON)


def pages_of(path: Path, random: Random) -> tuple[str, str]:
    """The page that shows most of this file, and another one that reads it; all others are shown as ever."""
    if path.parent.name == REGRESSION:
        return "regressions", COMPARISON
    return RUN, random.choice(OF_TABLES if path.suffix == ".parquet" else OF_RUNS)


def feed(session: Session) -> None:
    from fastapi.testclient import TestClient  # Airflow takes seconds to import: not for who feeds other fuzzers

    from tests.unit.plugins.server import airflow_in, pages_behind_airflow, session_token, show_store

    with temporary_home() as folder, airflow_in(folder), pytest.MonkeyPatch.context() as patch:
        show_store(store.home(), patch)
        server = pages_behind_airflow()
        files = sorted(files_of(make_store()))
        for number, random in enumerate(session.draws()):
            browser = TestClient(server, cookies={"_token": session_token()}, follow_redirects=False)
            path = random.choice(files)
            pages = pages_of(path, random)
            with Damage(path, random) as way, session.feeding(f"number {number}: {path.name}, {way}, {pages}"):
                is_listed(browser)
                for page in pages:
                    session.outcomes[shown(browser, path, page)] += 1


def is_listed(browser: TestClient) -> None:
    """The list of runs, made again, has the run that is intact."""
    (store.home() / "runs-index.json").unlink(missing_ok=True)
    listed = browser.get(LIST)
    if listed.status_code != 200 or "runs/whole" not in listed.text:
        raise AssertionError(f"status {listed.status_code}, and the whole run is not listed: {listed.text[:2000]}")


def shown(browser: TestClient, path: Path, page: str) -> str:
    """A page that reads the damaged file: only one of this file alone may fail, and says why."""
    answer = browser.get(f"/aftershock/{page.format(table=path.stem)}")
    if answer.status_code == 500 and page in MAY_FAIL:
        if "is damaged" not in answer.text:
            raise AssertionError(f"not told that a file is damaged: {answer.text[:2000]}")
    elif answer.status_code not in (200, 404):
        raise AssertionError(f"status {answer.status_code}: {answer.text[:2000]}")
    if page == "regressions" and os.path.lexists(path.with_name(DOCUMENT)) and REGRESSION not in answer.text:
        raise AssertionError(f"the comparison is neither listed nor said to be damaged: {answer.text[:2000]}")
    return f"status {answer.status_code}"


FUZZERS = [Fuzzer("damaged pages", feed, weight=0.05)]
