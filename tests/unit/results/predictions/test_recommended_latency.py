"""What recovery latency a run leads to expect, by restores whose loading and replay are set by hand."""

import math

import pandas as pd
import pytest
from scipy.special import stdtrit

from experiments import spec
from experiments.errors import BadInput
from results.predictions.advised import advise
from results.predictions.described import OTHERS_GO_ON
from results.predictions.recommended_latency import recommend_latency
from results.runs.store import write_json
from results.tables.schema import TABLES
from results.views.recommended import recommended
from tests.unit.results import synthetic

LOADED_S, SHARE, INTERVAL_S = 0.2, 0.1, 20.0  # a second of input is replayed in a tenth of a second
AGES_S = (2.0, 6.0, 16.0)


def recovery(fault, partition, how, ready_s, reached_s, age_s=None, epoch=None):
    moments = {"death": 0.0, "notice": 0.1, "ready": 0.1 + ready_s, "reached": 0.1 + reached_s}
    found = {f"{step}_ns": synthetic.ns(30 * fault + at_s) for step, at_s in moments.items()}
    about = {"fault": fault, "epoch": 2 * fault if epoch is None else epoch, "partition": partition, "how": how}
    return about | {"checkpoint_age_s": age_s} | found


def restored(fault, age_s, partition="out.0"):
    return recovery(fault, partition, "restored", LOADED_S, LOADED_S + SHARE * age_s, age_s)


def of(root, rows, recovery="partially-active"):
    run = synthetic.make_run(root, kills=())
    changed = [f"engine.recovery={recovery}", f"engine.checkpoint_interval_s={INTERVAL_S:g}"]
    if recovery != "partially-active":
        changed += ["engine.standby=0", "engine.replication_ratio=null"]
    write_json(run.experiment_path, spec.load("ppa-partially-active", changed).model_dump(mode="json"))
    table = pd.DataFrame(rows, columns=TABLES["partition_recoveries"].names)
    synthetic.write_table(run, "partition_recoveries", table)
    return run


RESTORED = [restored(fault, age_s) for fault, age_s in enumerate(AGES_S)]
PROMOTED = [recovery(fault, "window-1.0", "promoted", 0.05, 0.05 + 0.01 * fault) for fault in range(3)]


def test_a_checkpoint_is_on_average_half_an_interval_old(tmp_path):
    found = recommend_latency(of(tmp_path, RESTORED))
    assert found.expected.value == pytest.approx(LOADED_S + SHARE * INTERVAL_S / 2)
    assert found.restored_s == pytest.approx([LOADED_S + SHARE * age_s for age_s in AGES_S])
    assert found.expected.low == pytest.approx(LOADED_S + 0.025 * SHARE * INTERVAL_S, rel=0.05)
    assert found.expected.high == pytest.approx(LOADED_S + 0.975 * SHARE * INTERVAL_S, rel=0.01)
    assert found.promoted_s == ()


def test_the_limits_know_that_replays_are_not_all_as_fast(tmp_path):
    """Loading takes as long each time, and 12 s of input are replayed in .6 to 1.8 s: 1.2 s on average."""
    paces = (0.05, 0.1, 0.15)
    rows = [recovery(i, "out.0", "restored", LOADED_S, LOADED_S + 12.0 * pace, 12.0) for i, pace in enumerate(paces)]
    found, alike = (recommend_latency(of(tmp_path / str(each is rows), each)).expected for each in (rows, RESTORED))
    assert found.value == pytest.approx(alike.value)
    reach_s = 0.6 * math.sqrt(4 / 3) * stdtrit(2, 0.975)  # of Student's law with the scatter of three
    assert alike.high < found.value + reach_s == pytest.approx(found.high, rel=0.15)
    assert found.low == 0.0 < alike.low


def test_the_slowest_partition_of_a_fault_counts_and_copies_count_apart(tmp_path):
    slow = [restored(fault, 2 * age_s, "out.1") for fault, age_s in enumerate(AGES_S)]
    found = recommend_latency(of(tmp_path, [*RESTORED, *slow, *PROMOTED]))
    assert found.restored_s == pytest.approx([LOADED_S + 2 * SHARE * age_s for age_s in AGES_S])
    assert found.promoted_s == pytest.approx([0.05, 0.06, 0.07])


def test_of_restores_without_anything_to_replay_nothing_is_expected(tmp_path):
    assert recommend_latency(of(tmp_path, [restored(fault, 0.0) for fault in range(3)])).expected is None


def test_of_two_restores_nothing_is_expected(tmp_path):
    found = recommend_latency(of(tmp_path, RESTORED[:2]))
    assert (found.expected, len(found.restored_s), found.models) == (None, 2, {})


def test_a_fault_whose_partition_was_not_seen_to_arrive_does_not_count(tmp_path):
    lost = restored(3, 4.0) | {"reached_ns": None}
    assert recommend_latency(of(tmp_path, [*RESTORED, lost])).restored_s == pytest.approx(
        [LOADED_S + SHARE * age_s for age_s in AGES_S]
    )


@pytest.mark.parametrize("mode", ["global", "source-replay"])
def test_where_nothing_comes_back_from_its_own_checkpoint_nothing_is_expected(tmp_path, mode):
    with pytest.raises(BadInput, match="came back while others went on"):
        recommend_latency(of(tmp_path, RESTORED, mode))


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (RESTORED[:2], "-   not known: fewer than 3 restores"),
        ([restored(fault, 0.0) for fault in range(3)], "-   not known: no restore replayed input"),
        (PROMOTED[:1], "0.05 s   not known: one promotion"),
        (PROMOTED[:2], "0.055 s   0.05 s to 0.06 s in the run"),
    ],
    ids=["two restores", "nothing to replay", "one promotion", "two promotions"],
)
def test_why_there_are_no_limits_is_told(tmp_path, rows, told):
    text = recommended(advise(of(tmp_path, rows)))
    assert told in text
    assert all(len(line) <= 92 for line in text.splitlines())


def test_the_terminal_and_the_document_have_it(tmp_path):
    found = advise(of(tmp_path, [*RESTORED, *PROMOTED]))
    document, text = found.to_json(), recommended(found)
    assert document["recovery_latency"] == pytest.approx(1.2)
    assert document["recovery_latency_low"] < 0.3
    assert document["promotion_latency"] == pytest.approx(0.06)
    assert {"recovery_latency", "promotion_latency"} <= set(document["models"])
    assert "latency, restored" in text
    assert "0.06 s" in text
    assert all(len(line) <= 92 for line in text.splitlines())


def test_where_only_the_latency_is_advised_the_summary_s_reason_is_told_and_no_rate_can_be_given(tmp_path):
    run = of(tmp_path, RESTORED)
    row = run.table("predictions")[:1].assign(model=OTHERS_GO_ON, predicted=None, low=None, high=None, why=OTHERS_GO_ON)
    synthetic.write_table(run, "predictions", row)
    text = recommended(advise(run))
    told = " ".join(text.split())
    assert f"No checkpoint interval is advised. The summary of this run says of its prediction: {OTHERS_GO_ON}." in told
    assert "failures per second" not in text
    assert all(len(line) <= 92 for line in text.splitlines())
    with pytest.raises(BadInput, match=OTHERS_GO_ON):
        advise(run, failure_rate=1e-5)
