"""The checks of `partition_recoveries`: what follows the model passes, and each planted error is noticed."""

import re

import pandas as pd
import pytest

from experiments.spec import Experiment
from results.checks.catalogue import checks_for
from results.predictions.described import OTHERS_GO_ON, SOME_TAKE_NOTHING, not_described
from results.predictions.tables import write_predictions
from results.summary.findings import engine_and_mode
from results.tables.schema import TABLES
from results.views.terminal import summary
from tests.unit.results import synthetic
from tests.unit.results.judging import parts_at, verdict_of

READ_RATE, SERVICE_RATE, RATE = 2e7, 2000.0, 1000.0
AGES_S = (3.0, 6.0, 7.5)
MODEL, VALUES = "restores.as_modelled", "partition_recoveries.values"
PASSIVE = synthetic.experiment(
    cluster={"workers": 3},
    workload={"name": "nexmark", "query": "q12"},
    engine={
        "name": "dataflow",
        "protocol": "batch-aligned",
        "recovery": "passive",
        "standby": 1,
        "checkpoint_interval_s": 30,
    },
)


def rows(age_s, epoch, replay_factor=1.0):
    """A source and an operator of one slot that come back as the model says, or slower by a factor."""
    death_ns = synthetic.ns(20.0 * epoch)
    replay_s = age_s * RATE / SERVICE_RATE * replay_factor
    for name in ("persons.0", "count.0"):
        yield {
            "fault": epoch - 2,
            "epoch": epoch,
            "partition": name,
            "how": "restored",
            "death_ns": death_ns,
            "notice_ns": death_ns + 10**7,
            "ready_ns": death_ns + 10**8,
            "reached_ns": death_ns + 10**8 + round(replay_s * 1e9),
            "checkpoint_age_s": age_s,
            "rate": RATE,
            "replayed_records": round(age_s * RATE),
            "replayed_bytes": 0 if name == "persons.0" else 50_000,
            "loaded_bytes": 10**6,
            "load_s": 10**6 / READ_RATE,
        }


def table(factors=(1.0, 1.0, 1.0), ages_s=AGES_S):
    """Three recoveries."""
    told = enumerate(zip(ages_s, factors, strict=True), 2)
    found = [row for epoch, (age_s, factor) in told for row in rows(age_s, epoch, factor)]
    return pd.DataFrame(found, columns=TABLES["partition_recoveries"].names)


def verdict(root, frame, check, changes=None):
    """The verdict on a run with this table, and what was found or is lacking."""
    run = synthetic.make_run(root, changes=(changes or {}))
    synthetic.write_table(run, "partition_recoveries", frame)
    found = verdict_of(check, run, root, PASSIVE)
    return found["verdict"], f"{found.get('observed')} {found.get('detail')}"


def test_restores_as_the_model_says_pass(tmp_path):
    assert verdict(tmp_path, table(), MODEL) == ("pass", "0 % off: 1.6 (1.6), 3.1 (3.1), 3.85 (3.85) s None")


def test_how_far_sources_read_ahead_does_not_matter(tmp_path):
    frame = table()
    frame.loc[frame["partition"] == "persons.0", "replayed_records"] = [50_000, 100, 9]
    assert verdict(tmp_path, frame, MODEL)[1].startswith("0 % off")


@pytest.mark.parametrize(
    "spoilt",
    [
        table(factors=(1.0, 2.5, 1.0)),
        table().assign(checkpoint_age_s=[1.0, 1.0, 12.0, 12.0, 3.0, 3.0]),
        table().assign(load_s=[0.05, 0.05, 0.05, 0.05, 4.0, 4.0]),
        table().assign(rate=[RATE, RATE, 3 * RATE, 3 * RATE, RATE, RATE]),
    ],
    ids=["a slow replay", "ages that do not matter", "a slow load", "a rate that does not matter"],
)
def test_what_does_not_follow_the_model_fails(tmp_path, spoilt):
    assert verdict(tmp_path, spoilt, MODEL)[0] == "fail"


def test_what_is_just_beyond_the_limit_does_not_look_like_it(tmp_path):
    found, words = verdict(tmp_path, table(factors=(1.0, 1.325, 1.0)), MODEL)
    assert (found, words[:10]) == ("fail", "20.3 % off")


def test_the_restore_that_is_furthest_from_the_model_is_found(tmp_path):
    run = synthetic.make_run(tmp_path, changes={})
    synthetic.write_table(run, "partition_recoveries", table(factors=(1.0, 3.0, 1.0)))
    found = parts_at(MODEL, run, PASSIVE)
    assert (found.table, found.second) == ("partition_recoveries", 60.0)
    assert found.words == "second 60: the restore took 9.1 s instead of 3.1 s"


def in_a_backlog():
    """The second recovery waits 12 s for a slot, so the third strikes while what was due then is still processed."""
    frame = table()
    waits = frame["epoch"] == 3
    return frame.assign(**{name: frame[name] + waits * 12 * 10**9 for name in ("ready_ns", "reached_ns")})


def with_short_one(factor):
    """A fourth restore, which should take less than .5 s, takes longer by a factor."""
    return table(factors=(1.0, 1.0, 1.0, factor), ages_s=(*AGES_S, 0.2))


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (table()[:4], "2 restores can be compared with the model"),
        (
            table().assign(reached_ns=list(table()["reached_ns"])[:4] + [pd.NA] * 2),
            "2 restores can be compared with the model",
        ),
        (table(ages_s=(0.2, 0.3, 0.4)), "0 restores .*, 3 are needed: .* should take 0.5 s or more"),
        (in_a_backlog(), "2 restores .*, 3 are needed: the dataflow kept up with its load before the loss"),
        (table()[:0], "no partition was lost"),
    ],
    ids=["two restores", "one that did not arrive", "short ones", "one in a backlog", "none"],
)
def test_what_does_not_tell_enough_is_unknown(tmp_path, frame, why):
    found, told = verdict(tmp_path, frame, MODEL)
    assert found == "unknown"
    assert re.search(why, told)


def test_what_is_too_short_for_the_model_is_left_out_of_the_verdict(tmp_path):
    found, told = verdict(tmp_path, with_short_one(1.5), MODEL)
    assert found == "pass"
    assert told.count("(") == 3


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (table(), "pass"),
        (table().assign(how="resurrected"), "fail"),
        (table().assign(checkpoint_age_s=-1.0), "fail"),
        (table().assign(reached_ns=table()["ready_ns"] - 1), "fail"),
        (table().assign(notice_ns=table()["death_ns"] - 1), "fail"),
        (table()[:0], "unknown"),
    ],
    ids=["sound", "another word", "an age below 0", "reached before ready", "noticed before", "outages without rows"],
)
def test_the_values_of_the_table(tmp_path, frame, expected):
    assert verdict(tmp_path, frame, VALUES)[0] == expected


def test_a_run_in_which_nothing_was_lost_needs_no_rows(tmp_path):
    nothing = {"recoveries": lambda frame: frame[:0]}
    assert verdict(tmp_path, table()[:0], VALUES, nothing) == ("pass", "nothing was lost None")


@pytest.mark.parametrize(
    "change",
    [
        {"engine": {"checkpoint_interval_s": 8.0}},
        {"faults": {"processes": []}},
        {"faults": {"events": [{"at": 5, "targets": ["worker-1"]}], "processes": []}},
    ],
    ids=["short intervals", "no faults", "one fault"],
)
def test_who_cannot_be_judged_is_not_asked(change):
    document = PASSIVE.model_dump(mode="json")
    for part, fields in change.items():
        document[part] |= fields
    assert MODEL not in {check.name for check in checks_for(Experiment.model_validate(document))}


def test_who_is_asked():
    names = {check.name for check in checks_for(PASSIVE)}
    assert {MODEL, VALUES} <= names
    assert not names & {"utilization.predicted", "utilization.long_run", "replayed_recoveries.values"}
    whole = PASSIVE.model_copy(update={"engine": PASSIVE.engine.model_copy(update={"recovery": None, "standby": None})})
    names = {check.name for check in checks_for(whole)}
    assert MODEL not in names
    assert names >= {VALUES, "utilization.predicted", "utilization.long_run", "replayed_recoveries.values"}


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        ({"recovery": "passive", "standby": None}, OTHERS_GO_ON),
        ({"recovery": "blocking", "standby": 1}, OTHERS_GO_ON),
        ({"recovery": None, "standby": 1}, SOME_TAKE_NOTHING),
        ({"recovery": None, "standby": None}, None),
    ],
)
def test_the_model_says_in_one_line_which_runs_it_does_not_judge(engine, reason):
    document = PASSIVE.model_dump(mode="json")
    changed = Experiment.model_validate(document | {"engine": document["engine"] | engine})
    assert not_described(changed) == reason
    if reason:
        assert "\n" not in reason


def test_a_run_that_recovers_in_parts_has_the_reason_in_place_of_a_prediction(tmp_path):
    run = synthetic.make_run(tmp_path)
    found = write_predictions(run, PASSIVE)
    assert found[["model", "why"]].values.tolist() == [[OTHERS_GO_ON, OTHERS_GO_ON]]
    assert found["predicted"].isna().all()
    assert f"predicted {OTHERS_GO_ON}" in " ".join(summary(run).split())


@pytest.mark.parametrize(
    ("recovery", "words"),
    [("passive", "dataflow (protocol coordinated, recovery passive)"), ("global", "dataflow (protocol coordinated)")],
)
def test_people_are_told_which_runs_recover_in_parts(recovery, words):
    row = pd.Series({"engine": "dataflow", "protocol": "coordinated", "recovery": recovery, "trigger": "micro-batch"})
    assert engine_and_mode(row) == words


def lost_again():
    """Six recoveries; the second never arrives: what it restores is lost again, and the third brings it back.

    So the fourth strikes what is still catching up, and only the last two count again.
    """
    frame = table(factors=(1.0,) * 6, ages_s=(3.0, 6.0, 1.0, 7.5, 4.0, 5.0))
    frame.loc[frame["epoch"] == 3, ["ready_ns", "reached_ns"]] = pd.NA
    return frame


def test_one_restore_that_does_not_arrive_does_not_hide_the_later_ones(tmp_path):
    found, told = verdict(tmp_path, lost_again(), MODEL)
    assert found == "pass"
    assert told.count("(") == 3


def test_what_strikes_before_all_is_back_is_left_out(tmp_path):
    """No later recovery brings back more than one of the two partitions, so all of them strike what is incomplete."""
    frame = lost_again()
    found, told = verdict(tmp_path, frame[(frame["epoch"] < 4) | (frame["partition"] == "count.0")], MODEL)
    assert found == "unknown"
    assert "1 restore can be compared" in told
