"""Pages over damaged files: none fails, and what is whole is shown beside what is said to be damaged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from results import store
from tests.fuzz.damaging import REGRESSION, Damage, files_of, make_store
from tests.fuzz.session import Fuzzer, Session
from tests.fuzz.temporary_home import temporary_home

if TYPE_CHECKING:
    from fastapi.testclient import TestClient

LIST = "/aftershock/"
PAGES = ("history", "regressions", "compare?run=victim&run=whole", "compare.json?run=victim&run=whole", "dag-runs/x")
OF_THE_RUN = ("runs/victim", "runs/victim/charts.json", "runs/victim/tables/{table}.csv", f"regressions/{REGRESSION}")


def feed(session: Session) -> None:
    from fastapi.testclient import TestClient  # Airflow takes seconds to import: not for who feeds other fuzzers

    from tests.unit.plugins.server import airflow_in, api_server_over, session_token

    with temporary_home() as folder, airflow_in(folder), pytest.MonkeyPatch.context() as patch:
        server = api_server_over(store.home(), patch)
        files = sorted(files_of(make_store()))
        for number, random in enumerate(session.draws()):
            browser = TestClient(server, cookies={"_token": session_token()}, follow_redirects=False)
            path, page = random.choice(files), random.choice((*PAGES, *OF_THE_RUN))
            with Damage(path, random) as way, session.feeding(f"number {number}: {path.name}, {way}, {page}"):
                session.outcomes[shown(browser, path, page)] += 1


def shown(browser: TestClient, path: Path, page: str) -> str:
    """The list of runs, made anew, and one page more: of the run with a damaged file, it may say what is damaged."""
    (store.home() / "runs-index.json").unlink(missing_ok=True)
    listed = browser.get(LIST)
    if listed.status_code != 200 or "runs/whole" not in listed.text:
        raise AssertionError(f"status {listed.status_code}, and the whole run is not listed: {listed.text[:2000]}")
    answer = browser.get(f"/aftershock/{page.format(table=path.stem)}")
    if answer.status_code not in ((200, 404, 500) if page in OF_THE_RUN else (200, 404)):
        raise AssertionError(f"status {answer.status_code}: {answer.text[:2000]}")
    return f"status {answer.status_code}"


FUZZERS = [Fuzzer("damaged pages", feed, weight=0.03)]
