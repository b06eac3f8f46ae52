"""What the pages show of complete runs, of failed ones, and of none."""

from __future__ import annotations

import math
import re
import threading
from html.parser import HTMLParser

import pandas as pd
import pytest
from fastapi.testclient import TestClient
from markupsafe import escape

from plugins import known_runs
from plugins.present import (
    MEASURED,
    ROWS_SHOWN,
    SETTINGS,
    detail_label,
    plot_title,
    shown_plots,
)
from plugins.runs import RUNS_PER_PAGE
from results.runs import store
from results.summary import index
from results.tables.schema import SCHEMA_VERSION
from results.views.cells import ShownHead, cell, column_of, head, time_text
from results.views.report import write_report
from results.views.terminal import GUIDE, summary
from tests.e2e.example_run import CHECKPOINTS, START_NS, write_failed_run, write_run, write_table, write_tentative_run
from tests.unit.results import synthetic
from tests.unit.results.figures import too_precise
from tests.unit.results.regression.past import steady, write_nights
from tests.unit.results.test_query_recoveries import table as query_table


class Page(HTMLParser):
    """The tags and the visible words of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words = f"{self.words} {data}".strip()

    def all(self, attribute: str) -> list[str]:
        return [attrs[attribute] for _, attrs in self.tags if attrs.get(attribute)]


def get(browser: TestClient, address: str) -> Page:
    response = browser.get(address)
    assert response.status_code == 200, response.text
    return Page(response.text)


def test_empty_store_says_how_to_start(browser: TestClient):
    page = get(browser, "/aftershock/")
    assert "No run has finished yet" in page.words
    assert "make benchmark" in page.words
    assert "/dags/benchmark" in page.all("href")


def test_list_is_newest_first_with_figures(browser: TestClient):
    write_run("older", started_ns=START_NS)
    write_run("newer", started_ns=START_NS + 10**12)
    write_failed_run("broken", "broker gone; start it again", started_ns=START_NS - 10**12)
    response = browser.get("/aftershock/")
    assert re.findall(r'href="/aftershock/runs/([a-z]+)"', response.text) == ["newer", "older", "broken"]
    page = Page(response.text)
    assert "0.812" in page.words  # measured, 0.8125
    assert "0.826" in page.words
    for words in ("1 fail", "1 unknown", "3 pass", "2026-09-21 14:13:20", "structured-streaming", "done", "failed"):
        assert words in page.words


@pytest.mark.extended
def test_long_lists_are_paged(browser: TestClient):
    for number in range(RUNS_PER_PAGE + 3):
        write_failed_run(f"run-{number:03d}", "no disk", started_ns=START_NS + number)
    shown = [re.findall(r"runs/(run-\d+)", browser.get(f"/aftershock/?page={page}").text) for page in (1, 2)]
    assert shown == [
        [f"run-{number:03d}" for number in reversed(range(3, RUNS_PER_PAGE + 3))],
        ["run-002", "run-001", "run-000"],
    ]
    assert browser.get("/aftershock/?page=99").text == browser.get("/aftershock/?page=2").text
    assert browser.get("/aftershock/?page=first").status_code == 400


def test_a_run_shows_verdicts_figures_plots_and_tables(browser: TestClient):
    write_run("one")
    page = get(browser, "/aftershock/runs/one")
    order = [page.words.index(check) for check in ("estimates agree", "exactly once", "kills on time")]
    assert order == sorted(order)  # the worst first
    assert "Programs outside of the cluster kept 0.6 of the machine's 2 cores busy" in page.words
    for words in ("0.79 to 0.861", "3,993,600", "at most 0.05 s", "structured-streaming", GUIDE):
        assert words in page.words
    base = "/aftershock/runs/one"
    assert page.all("data-chart") == ["ledger", "useful_time", "timeline", "utilization", "recoveries"]
    assert set(page.all("data-source")) == {f"{base}/charts.json"}
    assert [link for link in page.all("src") if "/plots/" in link] == [
        f"{base}/plots/hosts.svg"
    ]  # the others are drawn
    assert {f"{base}/report.html", f"{base}/checks/data_docs/index.html"} <= set(page.all("href"))
    assert {f"{base}/tables/faults.csv", f"{base}/tables/faults.parquet"} <= set(page.all("href"))
    assert "table-hosts" not in page.all("id")
    assert "/dags/benchmark/runs/manual__2026-09-21T14%3A13%3A20%2B00%3A00" in page.all("href")


def test_a_fault_counts_on_pages_if_it_took_effect_as_in_the_report_and_on_the_terminal(browser: TestClient):
    run = synthetic.make_run(
        store.home() / "runs", run_id="one", changes={"runs": lambda rows: rows.assign(faults=len(rows) + 6)}
    )
    assert "Faults 6 took effect, of 7 planned" in get(browser, "/aftershock/runs/one").words
    cells = re.findall('<td class="number">([^<]*)</td>', browser.get("/aftershock/").text)
    assert cells[2] == "6"
    told = " ".join(summary(run).split())
    assert "7 faults planned" in told
    assert "6 took effect" in told
    report = " ".join(Page(write_report(run, synthetic.experiment()).read_text()).words.split())
    assert "Faults 6 took effect, of 7 planned" in report


def test_a_run_shows_what_its_tentative_output_was_worth(browser: TestClient):
    write_run("one")
    assert "Accuracy of tentative output" not in get(browser, "/aftershock/runs/one").words
    write_tentative_run("two")
    page = get(browser, "/aftershock/runs/two")
    assert "Accuracy of tentative output 0.26 0.25 predicted" in page.words
    assert "tentative and not yet corrected" in page.words
    assert "#table-tentative" in page.all("href")
    drawn = browser.get("/aftershock/runs/two/charts.json").json()["timeline"]["tentative"]
    assert len(drawn["windows"]["accuracy"]) == len(drawn["windows"]["predicted"]) == 20
    assert len(drawn["spans"]) == 1


def test_a_run_shows_what_was_copied_where(browser: TestClient):
    run = write_run("one")
    assert "Host of the copy" not in get(browser, "/aftershock/runs/one").words
    row = {"at_ns": START_NS, "partition": "count.0", "host": "worker-3", "seconds": 1.0, "cpu_s": 0.25, "records": 9}
    row |= {"primary_cpu_s": 0.5, "primary_records": 9, "input_bytes": 4321, "retained_bytes": 1234}
    write_table(run, "copies", [row])
    page = get(browser, "/aftershock/runs/one")
    assert "count.0 worker-3 1 0.25 0.5 4,321 1,234" in page.words
    assert "#table-copies" in page.all("href")


def test_a_run_shows_what_it_advises(browser: TestClient):
    """One whose experiment is not known advises nothing, and the page is whole all the same."""
    run = synthetic.make_run(store.home() / "runs", run_id="one")
    assert "Recommended" not in get(browser, "/aftershock/runs/one").words
    store.write_json(run.experiment_path, synthetic.experiment().model_dump(mode="json"))
    words = get(browser, "/aftershock/runs/one").words
    for each in ("Recommended", "7.44 s", "5.04 to 13.9 s", "of single recoveries"):
        assert each in words


def test_a_run_of_the_testbed_shows_what_to_copy_and_nothing_of_an_interval_that_it_does_not_know(browser: TestClient):
    run = synthetic.make_run(store.home() / "runs", run_id="one", kills=())
    fields = {"cluster": {"workers": 4, "worker_cores": 1}, "workload": {"name": "top-100", "parallelism": [4, 2, 1]}}
    engine = {"name": "dataflow", "protocol": "batch-aligned", "partitions": 4, "recovery": "passive"}
    store.write_json(run.experiment_path, synthetic.experiment(**fields, engine=engine).model_dump(mode="json"))
    rates = {"slices.0": 10.0, "slices.1": 90.0}
    write_table(run, "partition_rates", [{"partition": name, "rate": rate} for name, rate in rates.items()])
    words = get(browser, "/aftershock/runs/one").words
    for each in ("Recommended", "partitions copied 0 ", "at most 4 of 9", "ppa, definition 2"):
        assert each in words
    assert "of single recoveries" not in words
    assert "may be the best one already" not in words


def test_a_run_of_the_testbed_tells_its_protocol_and_nothing_that_it_has_not(browser: TestClient):
    run = write_run("one")
    (row,) = run.table("runs").astype(object).where(lambda table: table.notna(), None).to_dict("records")
    write_table(run, "runs", [row | {"engine": "dataflow", "protocol": "uncoordinated", "message_overhead": 1.25}])
    words = get(browser, "/aftershock/runs/one").words
    for told in ("uncoordinated", "Bytes sent / bytes of data", "1.25"):
        assert told in words
    what_was_run, _, measured = words.partition("What was run")[2].partition("What else was measured")
    assert "uncoordinated" in what_was_run
    assert "Bytes sent / bytes of data 1.25" in " ".join(measured.partition("Tables")[0].split())
    assert "Trigger" not in what_was_run


def test_every_link_of_a_run_leads_somewhere(browser: TestClient):
    write_run("one")
    page = get(browser, "/aftershock/runs/one")
    own = {link for link in page.all("href") + page.all("src") if link.startswith("/aftershock/")}
    assert len(own) > 20
    assert {link: browser.get(link).status_code for link in own} == dict.fromkeys(own, 200)


def test_the_page_of_a_run_reads_each_table_once(browser: TestClient, monkeypatch: pytest.MonkeyPatch):
    write_run("one")
    read: list[str] = []
    read_table = store.read_table
    monkeypatch.setattr(store, "read_table", lambda path, *rest: read.append(path.stem) or read_table(path, *rest))
    get(browser, "/aftershock/runs/one")
    assert {"runs", "ledger", "faults", "predictions"} <= set(read)
    assert len(read) == len(set(read))


def test_long_tables_are_cut_and_say_so(browser: TestClient):
    write_run("one")
    text = browser.get("/aftershock/runs/one").text
    assert f"The first {ROWS_SHOWN} of {CHECKPOINTS} rows" in text
    checkpoints = text[text.index('id="table-checkpoints"') : text.index('id="table-ledger"')]
    assert checkpoints.count("<tr>") == ROWS_SHOWN + 1


def test_tables_without_rows_are_one_line_with_their_downloads(browser: TestClient):
    run = write_run("one")
    write_table(run, "copies", [])
    text = browser.get("/aftershock/runs/one").text
    folded, _, without = text.partition("Without rows in this run:")
    assert '<details id="table-faults">' in folded
    assert 'id="table-copies"' not in folded
    assert '<a id="table-copies" href="/aftershock/runs/one/tables/copies.csv" download>copies</a>' in without
    assert "table-faults" not in without


def test_a_table_is_headed_by_label_and_unit_and_tells_name_and_meaning(browser: TestClient):
    write_run("one")
    page = browser.get("/aftershock/runs/one").text
    heads = re.findall(r'<th scope="col" title="([^"]*)"( class="number")?>([^<]*)</th>', page)
    assert {
        ("planned_ns: planned time", ' class="number"', "Planned (UTC)"),
        ("committed_records: records committed", ' class="number"', "Committed [records]"),
        ("cause: the clock whose tick caused it, or the label of a listed fault", "", "Cause"),
    } <= set(heads)


def test_a_table_of_one_row_is_a_list_of_facts(browser: TestClient):
    write_run("one")
    page = browser.get("/aftershock/runs/one").text
    runs, faults = (page[page.index(f'id="table-{name}"') :].partition("</details>")[0] for name in ("runs", "faults"))
    assert '<dt title="driver: cluster.driver">Cluster</dt><dd>local</dd>' in runs
    assert '<dd title="20480.0">20,480</dd>' in runs
    assert "<table" not in runs
    assert "<dl" not in faults


def test_a_column_that_the_schema_lacks_is_headed_by_its_name():
    assert head("ledger", "later") == ShownHead("later", "not in the schema of this version", False)


def test_every_detail_of_a_run_has_a_label_of_its_own():
    labels = [detail_label(name) for name in (*SETTINGS, *MEASURED)]
    assert len(set(labels)) == len(labels)
    assert {"Machine", "Cluster", "Window [s]", "Load [records/s]", "Bytes sent / bytes of data"} <= set(labels)


def test_a_failed_run_shows_its_error(browser: TestClient):
    write_failed_run("broken", "the broker is gone; look at <raw/broker.log>")
    page = get(browser, "/aftershock/runs/broken")
    assert "the broker is gone; look at <raw/broker.log>" in page.words
    assert "This run left no tables" in page.words


def test_a_list_says_which_runs_are_not_read_yet_and_has_them_read(
    browser: TestClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(known_runs, "READING_S", 0.0)
    for name in ("one", "two"):
        write_run(name)
    page = get(browser, "/aftershock/")
    assert "2 of these runs are not read yet" in page.words
    assert "0.812" not in page.words
    for reader in [thread for thread in threading.enumerate() if thread.name == known_runs.READER]:
        reader.join()
    page = get(browser, "/aftershock/")
    assert "not read yet" not in page.words
    assert "0.812" in page.words


def test_a_history_waits_for_no_run_either(browser: TestClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(known_runs, "READING_S", 0.0)
    listed: list[float] = []
    rows = index.rows
    monkeypatch.setattr(
        index, "rows", lambda limit_s=math.inf, **asked: listed.append(limit_s) or rows(limit_s, **asked)
    )
    write_run("one")
    assert "Not read yet, so in no history: 1 of" in get(browser, "/aftershock/history").words
    assert listed == [0.0], "once for each request"
    for reader in [thread for thread in threading.enumerate() if thread.name == known_runs.READER]:
        reader.join()
    assert "Not read yet" not in get(browser, "/aftershock/history").words


def test_a_history_says_no_change_only_where_one_could_be_shown(browser: TestClient):
    run = synthetic.make_run(store.home() / "runs", run_id="one")
    where = {"experiment_digest": "d0", "machine": "a machine", "schema_version": SCHEMA_VERSION}
    store.write_json(run.root / "status.json", run.status().to_json() | where)
    words = " ".join(get(browser, "/aftershock/history?metric=lost").words.split())
    assert "Changes of counts are judged by aftershock results regress only." in words
    write_nights(steady(11))
    index.rows()  # a page does not wait until all are read
    address = "/aftershock/history?digest=d1&metric=service_rate"
    assert "No change can be shown: that takes 12 runs" in get(browser, address).words
    write_nights(steady(1), first=11)
    words = get(browser, address).words
    assert "No change beyond chance." in words
    assert "History of service rate" in words
    assert "service rate [records/s]" in words
    assert "can be shown" not in words
    drawn = browser.get("/aftershock/history.json?digest=d1&metric=service_rate").json()["history"]
    assert (len(drawn["values"]), drawn["changes"], drawn["levels"]) == (12, [], [])


def test_an_address_of_no_history_leads_to_those_that_there_are(browser: TestClient):
    write_nights(steady(1))
    page = get(browser, "/aftershock/history?digest=pruned")
    assert "No such history" in page.words
    assert any("digest=d1" in link for link in page.all("href"))
    assert "No history yet" not in page.words


@pytest.mark.extended
@pytest.mark.parametrize("attack", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>'])
def test_text_from_results_is_escaped(browser: TestClient, attack: str):
    run = write_failed_run("one", attack)
    store.write_json(run.root / "status.json", run.status().to_json() | {"experiment": attack})
    row = dict.fromkeys(("check", "table", "observed", "expected", "detail"), attack) | {"verdict": "fail"}
    write_table(run, "verdicts", [row])
    (run.plots).mkdir()
    (run.plots / f"{attack.replace('/', '')}.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    for address in ("/aftershock/", "/aftershock/runs/one"):
        shown = browser.get(address).text
        assert attack not in shown
        assert str(escape(attack)) in shown


@pytest.mark.parametrize("address", ["/aftershock/", "/aftershock/runs/one", "/aftershock/absent"])
def test_nothing_inline_and_nothing_from_outside(browser: TestClient, address: str):
    write_run("one")
    page = Page(browser.get(address).text)
    assert all(link.startswith(("/", "#")) and not link.startswith("//") for link in page.all("href") + page.all("src"))
    assert not any(name.startswith("on") or name == "style" for _, attrs in page.tags for name in attrs)
    assert all(attrs.get("src") for tag, attrs in page.tags if tag == "script")
    assert not any(tag == "style" for tag, _ in page.tags)


def test_images_have_alternatives_and_tables_have_headers(browser: TestClient):
    write_run("one")
    page = get(browser, "/aftershock/runs/one")
    assert all(attrs.get("alt") for tag, attrs in page.tags if tag == "img")
    assert all(attrs.get("scope") for tag, attrs in page.tags if tag == "th")
    tags = [tag for tag, _ in page.tags]
    assert tags.count("table") == tags.count("caption") > 0


def test_addresses_follow_a_base_path_of_airflow(browser: TestClient, monkeypatch: pytest.MonkeyPatch):
    write_run("one")
    monkeypatch.setattr(browser.app, "root_path", "/airflow")
    page = get(browser, "/airflow/aftershock/runs/one")
    links = [link for attribute in ("href", "src", "data-source") for link in page.all(attribute)]
    assert {"/airflow/aftershock/runs/one/charts.json", "/airflow/aftershock/runs/one/plots/hosts.svg"} <= set(links)
    assert all(link.startswith(("/airflow/aftershock/", "/airflow/dags/benchmark", "#")) for link in links)


@pytest.mark.parametrize(
    ("table", "column", "value", "text"),
    [
        ("recoveries", "death_ns", 1_790_000_000_123_456_789, "2026-09-21 14:13:20.123"),
        ("latency", "p50_s", 0.123456789, "0.123"),
        ("probes", "rate", 12345.678, "12,346"),
        ("checkpoints", "records", 1234567, "1,234,567"),
        ("checkpoints", "batch", 1234567, "1234567"),
        ("checkpoints", "undisturbed", False, "no"),
        ("checkpoints", "wal_s", None, "\N{EN DASH}"),
        ("faults", "targets", "worker-1", "worker-1"),
        ("faults", "later", 12345, "12345"),
    ],
)
def test_cells(table: str, column: str, value: object, text: str):
    assert cell(column_of(table, column), value).text == text


def test_a_plot_is_shown_once_as_svg_if_possible():
    names = ["timeline.png", "timeline.svg", "ledger.png", "recovery.svg"]
    assert shown_plots(names) == ["ledger.png", "recovery.svg", "timeline.svg"]


def test_small_words():
    assert plot_title("recovery-distribution.svg") == "Recovery distribution"
    assert time_text(0) == "1970-01-01 00:00:00.000"


def test_the_comparison_holds_runs_of_one_experiment_against_eq_10_together(browser: TestClient):
    for seed in range(4):
        changes = {"runs": lambda rows, seed=seed: rows.assign(seed=seed)}
        run = synthetic.make_run(store.home() / "runs", run_id=f"run-{seed}", changes=changes)
        store.write_json(run.root / "status.json", run.status().to_json() | {"experiment_digest": "d1"})
    words = " ".join(
        get(browser, "/aftershock/compare?" + "&".join(f"run=run-{seed}" for seed in range(4))).words.split()
    )
    assert re.search(r"against eq. 10 verdict pass measured 0\.\d+ eq. 10 0\.\d+ allowed 0\.\d+ to", words), words
    assert "faults, seeds 24, 4" in words
    few = get(browser, "/aftershock/compare?run=run-0&run=run-1").words
    assert "12 faults under 2 seeds: at least 2 seeds and 20 faults are needed." in few


def test_runs_that_eq_10_does_not_describe_are_not_said_to_have_no_faults(browser: TestClient):
    for number in range(2):
        run = synthetic.make_run(store.home() / "runs", run_id=f"run-{number}", without=("predictions",))
        store.write_json(run.root / "status.json", run.status().to_json() | {"experiment_digest": "d1"})
    words = " ".join(get(browser, "/aftershock/compare?run=run-0&run=run-1").words.split())
    assert "against eq. 10 unknown run-0 has no utilization that eq. 10 describes." in words


def test_the_comparison_of_two_experiments_says_nothing_of_eq_10(browser: TestClient):
    for digest in ("d1", "d2"):
        run = synthetic.make_run(store.home() / "runs", run_id=f"run-{digest}")
        store.write_json(run.root / "status.json", run.status().to_json() | {"experiment_digest": digest})
    assert "eq. 10" not in get(browser, "/aftershock/compare?run=run-d1&run=run-d2").words


def test_repeats_of_one_experiment_differ_in_nothing_that_was_run(browser: TestClient):
    """What each of them measured is none of it, its own saturating load included."""
    for number in range(2):
        more = {"service_rate": 3000.0 + number, "load_rate": 3300.0 + number, "message_overhead": 1.1 + number}
        changes = {"runs": lambda rows, more=more: rows.assign(**more)}
        run = synthetic.make_run(store.home() / "runs", run_id=f"run-{number}", changes=changes)
        store.write_json(run.root / "status.json", run.status().to_json() | {"experiment_digest": "d1"})
    address = "/aftershock/compare?run=run-0&run=run-1"
    assert "Nothing: the same experiment, seed included." in get(browser, address).words
    store.write_json(run.root / "status.json", run.status().to_json() | {"experiment_digest": "d2"})
    words = get(browser, address).words
    assert "Load [records/s]" in words
    assert "Bytes sent" not in words


def test_what_differs_is_shown_with_as_many_digits_as_it_takes(browser: TestClient):
    for name, interval_s in (("one", 5.012), ("other", 5.013), ("third", 9.5)):
        changes = {"runs": lambda rows, interval_s=interval_s: rows.assign(checkpoint_interval_s=interval_s)}
        synthetic.make_run(store.home() / "runs", run_id=name, changes=changes)
    words = " ".join(get(browser, "/aftershock/compare?run=one&run=other&run=third").words.split())
    assert "Checkpoint interval [s] 5.012 5.013 9.5" in words
    words = " ".join(get(browser, "/aftershock/compare?run=one&run=third").words.split())
    assert "Checkpoint interval [s] 5.01 9.5" in words


def test_runs_whose_tables_are_of_another_version_are_said_to_be(browser: TestClient):
    for name in ("new", "old"):
        run = synthetic.make_run(store.home() / "runs", run_id=name)
        about = {"experiment_digest": "d1", "machine": "a machine", "schema_version": SCHEMA_VERSION - (name == "old")}
        store.write_json(run.root / "status.json", run.status().to_json() | about)
    told = "of another version of the code"
    pages = {name: " ".join(get(browser, f"/aftershock/{name}").words.split()) for name in ("runs/new", "runs/old")}
    assert told not in pages["runs/new"]
    assert f"Its tables are {told}" in pages["runs/old"]
    assert "aftershock results recompute old makes them again" in pages["runs/old"]
    both = " ".join(get(browser, "/aftershock/compare?run=new&run=old").words.split())
    assert f"O{told[1:]}, so their figures may mean something else: old." in both
    assert f"Left out: 1 run with tables {told}." in get(browser, "/aftershock/history").words
    store.remove("new")
    words = get(browser, "/aftershock/history").words
    assert "No history yet" in words
    assert f"Left out: 1 run with tables {told}." in words


def test_the_comparison_says_what_failed_why_values_are_missing_and_in_which_fields_experiments_differ(
    browser: TestClient,
):
    for name, kills, recovery in (("one", synthetic.KILLS_S, "query"), ("other", (), None)):
        run = synthetic.make_run(store.home() / "runs", run_id=name, kills=kills)
        store.write_json(run.experiment_path, {"name": "wordcount", "seed": 1, "engine": {"recovery": recovery}})
    failed = {"check": "faults.on_time", "table": "faults", "verdict": "fail", "observed": "1", "expected": "2"}
    synthetic.write_table(run, "verdicts", pd.DataFrame([failed | {"detail": "late"}]))
    words = " ".join(get(browser, "/aftershock/compare?run=one&run=other").words.split())
    assert "failed checks \N{EN DASH} faults.on_time" in words
    assert "detect s (median)" in words
    assert "Median: over the recoveries of a run" in words
    assert "detect, restart, restore, catch up (other): no fault took effect" in words
    assert "engine.recovery query null" in words


def test_runs_that_do_not_say_what_they_ran_are_not_said_to_be_of_one_experiment(browser: TestClient):
    for name in ("one", "other"):
        synthetic.make_run(store.home() / "runs", run_id=name)
    words = get(browser, "/aftershock/compare?run=one&run=other").words
    assert "Nothing that is recorded: these runs do not say which experiment they are of." in words
    assert "the same experiment" not in words


def test_runs_that_recover_by_query_show_available_queries_and_who_was_behind(browser: TestClient):
    plain = synthetic.make_run(store.home() / "runs", run_id="plain")
    for name, late_s in (("early", 0.0), ("late", 9.0)):
        run = synthetic.make_run(store.home() / "runs", run_id=name)
        synthetic.write_table(run, "query_recoveries", query_table(late_s))
    title = "Queries that are available"
    assert title in get(browser, "/aftershock/runs/early").words
    assert title not in get(browser, f"/aftershock/runs/{plain.run_id}").words
    drawn = browser.get("/aftershock/runs/early/charts.json").json()["availability"]
    assert (drawn["queries"], drawn["available"][-1], drawn["never_back"]) == (2, 1, [])
    both = get(browser, "/aftershock/compare?run=late&run=early").words
    assert "late at some moment has fewer queries available than early, by 50 % of those that were lost" in " ".join(
        both.split()
    )
    assert title not in get(browser, "/aftershock/compare?run=plain&run=early").words
    (store.finished("late").root / "status.json").write_text("{}")  # what cannot be read is in none of the charts
    assert title not in get(browser, "/aftershock/compare?run=late&run=early").words
    assert list(browser.get("/aftershock/compare.json?run=late&run=early").json()["ledgers"]["names"]) == ["early"]


def test_no_page_shows_a_figure_of_more_than_three_digits(browser: TestClient):
    for name in ("one", "other"):
        run = synthetic.make_run(store.home() / "runs", run_id=name)
        digest = {"experiment_digest": "d1", "machine": "a machine, 2 cores"}
        store.write_json(run.root / "status.json", run.status().to_json() | digest)
    pages = ("", "runs/one", "runs/one?table=latency&second=77.25", "compare?run=one&run=other", "history", "matrix")
    for page in pages:
        assert too_precise(get(browser, f"/aftershock/{page}").words) == [], page


def test_a_download_keeps_every_digit(browser: TestClient):
    run = synthetic.make_run(store.home() / "runs", run_id="one")
    header, *rows = browser.get("/aftershock/runs/one/tables/useful_time.csv").text.splitlines()
    assert header == "second,measured_s,replayed_s"
    assert [float(row.split(",")[2]) for row in rows] == list(run.table("useful_time")["replayed_s"])
    assert too_precise("\n".join(rows).replace(",", " "))
