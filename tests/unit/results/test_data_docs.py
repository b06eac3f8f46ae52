"""What a validation writes, and that it touches nothing else: no connection, and not the process that it runs in."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from results.checks import validate
from results.checks.catalogue import checks_for
from results.runs.store import Run
from tests.unit.results import synthetic


def test_results_and_data_docs_are_written(good_run: Run) -> None:
    results = json.loads((good_run.checks / "results.json").read_text())
    meant = checks_for(synthetic.experiment())
    assert [result["check"] for result in results] == [check.name for check in meant]
    assert all(result["success"] for result in results)
    pages = list((good_run.checks / "data_docs").rglob("*.html"))
    index = (good_run.checks / "data_docs" / "index.html").read_text()
    assert all(check.name in index for check in meant)
    assert len(pages) > len(meant)


def test_data_docs_load_nothing_from_outside_and_run_no_script(good_run: Run) -> None:
    for page in (good_run.checks / "data_docs").rglob("*.html"):
        text = page.read_text()
        assert not re.search(r"""(src|href)=["']?(https?:)?//|<script|url\(""", text), page


def test_data_docs_links_lead_somewhere(good_run: Run) -> None:
    for page in (good_run.checks / "data_docs").rglob("*.html"):
        for link in re.findall(r'href="([^"#:]+)"', page.read_text()):
            assert (page.parent / link.split("?")[0]).exists(), (page, link)


@pytest.mark.extended
def test_loading_great_expectations_does_not_end_a_process_without_a_main_file() -> None:
    code = "import results.checks.judge, sys; print('loaded', 'pyspark.sql.connect' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert done.stdout == "loaded False\n"


@pytest.mark.extended
def test_validating_opens_no_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []
    monkeypatch.setattr(socket.socket, "connect", lambda self, address: tried.append(address))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *address, **options: tried.append(address))
    validate(synthetic.make_run(tmp_path, without=("hosts",)), synthetic.experiment())
    assert tried == []
