"""The ledger of a campaign of kills: it goes on where it stopped, and counts nothing that it should not."""

import json
from dataclasses import asdict

import pytest

from benchmarks.testbed.kill_nights import NIGHT_QUERIES, Ledger, LedgerLine, played
from benchmarks.testbed.kills import EpisodeFailed, run_episode
from tests.integration.testbed.exact_results import Verdict
from tests.integration.testbed.kills.campaign import Episode, Injection, Means
from tests.integration.testbed.kills.moments import Moment


def line(strategy, kills, seed=0, wrong=""):
    return LedgerLine(strategy, "q12", seed, {"running": kills} if kills else {}, wrong=wrong)


def test_the_strategy_with_the_fewest_episodes_comes_next_with_another_query_and_seed(tmp_path):
    ledger = Ledger(tmp_path / "kills.jsonl")
    for each in (line("global", 5), line("passive", 11), line("global", 4, 1)):
        ledger.add(each)
    assert ledger.next(["global", "passive"], 20) == ("passive", NIGHT_QUERIES[1], 1)
    ledger.add(line("passive", 7, 1))
    assert ledger.next(["global", "passive"], 18) == ("global", NIGHT_QUERIES[2], 2)
    assert ledger.next(["global", "passive"], 9) is None


def test_a_strategy_whose_episodes_all_went_wrong_leaves_the_others_their_turns(tmp_path):
    ledger = Ledger(tmp_path / "kills.jsonl")
    for _ in range(6):
        strategy, _, seed = ledger.next(["global", "passive", "upstream"], 100)
        ledger.add(line(strategy, 0, seed, "lost") if strategy == "global" else line(strategy, 10, seed))
    assert [each.strategy for each in ledger.lines] == ["global", "passive", "upstream"] * 2


def test_another_start_goes_on_behind_the_last_episode(tmp_path):
    path = tmp_path / "kills.jsonl"
    Ledger(path).add(line("passive", 11))
    with path.open("a") as file:
        file.write(json.dumps(asdict(line("passive", 11, 1)))[:-9])  # as a machine leaves it that goes down
    again = Ledger(path)
    assert (again.kills("passive"), again.next(["passive"], 20)) == (11, ("passive", NIGHT_QUERIES[1], 1))
    again.add(line("passive", 9, 1))
    assert [each.kills for each in Ledger(path).lines] == [11, 9]


def test_an_episode_that_went_wrong_counts_no_kills_and_is_named(tmp_path):
    def fails(case, seed):
        raise EpisodeFailed("seed 3: not exactly once")

    found = played("passive", "q8", 3, fails)
    assert (found.kills, found.wrong) == (0, "seed 3: not exactly once")
    ledger = Ledger(tmp_path / "kills.jsonl")
    ledger.add(found)
    assert ledger.next(["passive"], 1) == ("passive", NIGHT_QUERIES[1], 1)
    assert ledger.table(["passive"]).splitlines()[-1].endswith("| 0 | 1 | 1 |")


@pytest.mark.parametrize(("strategy", "standby"), [("partially-active", 3), ("source-replay", 0)])
def test_an_episode_counts_its_kills_by_the_moment_that_they_hit(strategy, standby):
    hits = [(Means.KILL, 1, Moment.RUNNING), (Means.KILL_ALL, 3, Moment.SHORT), (Means.PAUSE, 1, Moment.RUNNING)]
    injections = [Injection(0, means, victims, Moment.RESTORING, hit) for means, victims, hit in hits]
    cases = []

    def run(case, seed):
        cases.append((case.recovery, case.query, case.standby, seed))
        return Episode(injections, Verdict(70, lost=0, doubled=0, wrong=0), [], own_deaths=0)

    found = played(strategy, "q8", 4, run)
    assert cases == [(strategy, "q8", standby, 4)]
    assert (found.moments, found.kills, found.pauses, found.records) == ({"running": 1, "short of a slot": 3}, 4, 1, 70)


def test_an_episode_that_does_not_begin_is_one_that_went_wrong(tmp_path, monkeypatch):
    def not_begun(job, folder, seed):
        raise TimeoutError("the coordinator has not begun")

    monkeypatch.setattr("benchmarks.testbed.kills.tempfile.mkdtemp", lambda prefix: str(tmp_path))
    kept = played("passive", "q12", 0, lambda case, seed: run_episode(case, seed, not_begun))
    assert (kept.kills, kept.wrong) == (0, f"seed 0: the coordinator has not begun; its files are in {tmp_path}")
