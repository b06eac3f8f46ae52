"""The search for the sustainable rate, on systems whose capacity is known."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.sustainable.lag import (
    MOST_GROWTH,
    MOST_SAMPLES,
    ProbeOutcome,
    _slopes,
    _thinned,
    grows,
    growth,
    is_overwhelmed,
    judge,
)
from models.sustainable.search import End, Search
from models.sustainable.service_rate import of_burst, service_rate

INTERVAL_S = 1.0
SUSTAINED, NOT_SUSTAINED, VOID, UNSEEN = (
    ProbeOutcome.SUSTAINED,
    ProbeOutcome.NOT_SUSTAINED,
    ProbeOutcome.VOID,
    ProbeOutcome.UNSEEN,
)
CAPACITIES, PRECISIONS = st.floats(1.0, 1e6), st.floats(0.005, 0.5)


def searched(search, outcome_at, service_rate_at=lambda rate: None):
    """Every state of a search on a system that answers by rate, with the rates that were tried."""
    states, tried = [search], []
    while states[-1].end is None:
        rate = states[-1].rate
        tried.append((rate, outcome_at(rate)))
        states.append(states[-1].after(tried[-1][1], service_rate_at(rate)))
    return states, tried


def up_to(capacity):
    """A system that sustains every rate up to its capacity."""
    return lambda rate: SUSTAINED if rate <= capacity else NOT_SUSTAINED


@given(CAPACITIES, CAPACITIES, PRECISIONS, st.sampled_from([0.0, 0.1, 0.9, 1.0, 5.0, None]))
def test_a_steady_system_is_bracketed_within_the_precision_wherever_the_search_begins(
    capacity, begin, precision, measured
):
    """And whatever is measured of it: its service rate, too much, too little, or nothing."""
    pace = None if measured is None else measured * capacity
    states, _ = searched(Search.near(begin, precision, 100), up_to(capacity), lambda rate: pace)
    found = states[-1]
    assert found.end is End.CLOSED
    assert found.low <= capacity < found.high <= found.low * (1 + precision)
    assert found.high / found.low - 1 <= precision, "as check sustainable.bracketed computes it"


@given(CAPACITIES, PRECISIONS, st.floats(-0.4, 0.4))
def test_two_probes_do_if_the_service_rate_is_measured_within_half_the_precision(capacity, precision, error):
    truth = capacity / (1 - MOST_GROWTH)
    states, tried = searched(Search.near(capacity * (1 + precision) ** error, precision, 100), up_to(truth))
    assert states[-1].end is End.CLOSED
    assert [outcome for _, outcome in tried] == [SUSTAINED, NOT_SUSTAINED]


@given(CAPACITIES, st.floats(0.01, 100), PRECISIONS)
def test_what_a_failed_probe_measures_closes_the_bracket_wherever_the_search_begins(capacity, error, precision):
    truth = capacity / (1 - MOST_GROWTH)
    states, tried = searched(Search.near(error * capacity, precision, 100), up_to(truth), lambda rate: capacity)
    assert states[-1].end is End.CLOSED
    failed = [outcome for _, outcome in tried].index(NOT_SUSTAINED)
    assert len(tried) - failed <= 3
    assert failed <= 15, "a hundredth: at the finest precision eight steps until they double, then six"


@given(CAPACITIES, CAPACITIES, PRECISIONS, st.integers(2, 40), st.randoms(use_true_random=False))
def test_whatever_the_probes_say_the_bracket_only_narrows_and_nothing_above_a_failed_rate_is_reported(
    capacity, begin, precision, most, chance
):
    def outcome(rate):
        noisy = rate * chance.uniform(0.5, 2)
        return chance.choice(
            [VOID, SUSTAINED if noisy <= capacity else NOT_SUSTAINED, chance.choice(list(ProbeOutcome))]
        )

    def service_rate(rate):
        return chance.choice([None, 0.0, rate * chance.uniform(0, 2)])

    states, tried = searched(Search.near(begin, precision, most), outcome, service_rate)
    assert len(tried) <= most
    for before, after in pairwise(states):
        assert (after.low or 0) >= (before.low or 0)
        assert (after.high or np.inf) <= (before.high or np.inf)
    failed = [rate for rate, outcome in tried if outcome is NOT_SUSTAINED]
    kept = [rate for rate, outcome in tried if outcome is SUSTAINED]
    assert states[-1].low == max(kept, default=None)
    assert states[-1].high == min(failed, default=None)
    assert max(kept, default=0) < min(failed, default=np.inf)


def test_if_more_is_sustained_than_was_measured_steps_get_longer_until_they_double_then_bisect():
    _, tried = searched(Search.near(1000, 0.1, 20), up_to(6000))
    rises = [after / before for (before, _), (after, _) in pairwise(tried[:6])]
    assert rises == pytest.approx([1.09, 1.09**2, 1.09**4, 1.09**8, 2.0])
    assert [outcome for _, outcome in tried[:6]] == [SUSTAINED] * 5 + [NOT_SUSTAINED]
    assert tried[6][0] == pytest.approx((tried[4][0] * tried[5][0]) ** 0.5)


def test_if_less_is_sustained_and_nothing_is_measured_probes_halve_then_bisect():
    _, tried = searched(Search.near(1000, 0.5, 20), up_to(300))
    assert [round(rate) for rate, _ in tried] == [847, 424, 212, 300]


def test_a_query_that_fails_at_the_pace_of_the_records_is_given_ever_fewer_until_half():
    """It is no matter of its service rate, which so does not show how far down the next rate has to be."""
    states, tried = searched(Search.near(1000, 0.1, 20), up_to(100), lambda rate: rate)
    falls = [after / before for (before, _), (after, _) in pairwise(tried[:6])]
    assert falls == pytest.approx([1 / 1.09, 1 / 1.09**2, 1 / 1.09**4, 1 / 1.09**8, 0.5])
    assert states[-1].end is End.CLOSED


def test_after_a_rate_that_was_sustained_a_failure_counts_as_the_first():
    _, tried = searched(Search.near(1000, 0.1, 20), up_to(590), lambda rate: rate)
    assert [outcome for _, outcome in tried[:6]] == [NOT_SUSTAINED] * 3 + [SUSTAINED] * 2 + [NOT_SUSTAINED]
    assert tried[6][0] == pytest.approx(tried[5][0] / 1.09)


def test_a_void_probe_is_tried_once_more_and_a_second_one_ends_the_search():
    once = Search.near(1000, 0.05, 20).after(SUSTAINED).after(VOID)
    assert (once.end, once.high) == (None, None)
    assert once.rate == Search.near(1000, 0.05, 20).after(SUSTAINED).rate > once.low
    assert once.after(VOID).end is End.GENERATOR
    assert once.after(UNSEEN).end is End.COMMITS, "too few samples of lag, which is not the generator's doing"
    assert once.after(SUSTAINED).after(VOID).end is None, "void probes of different rates do not add up"


def test_if_the_generator_does_not_deliver_even_the_first_rate_lower_ones_are_tried():
    """Otherwise a burst, which the query may read faster than the generator goes on, could end the run."""
    states, tried = searched(
        Search.near(1000, 0.1, 20), lambda rate: VOID if rate > 700 else SUSTAINED, lambda rate: 700
    )
    assert [outcome for _, outcome in tried] == [VOID, VOID, SUSTAINED, VOID, VOID]
    assert tried[2][0] == pytest.approx(700 / (1 - MOST_GROWTH) / 1.09**0.5)
    assert (states[-1].low, states[-1].high, states[-1].end) == (tried[2][0], None, End.GENERATOR)
    nothing = Search.near(1000, 0.1, 20).after(VOID).after(VOID)
    assert (nothing.rate, nothing.end) == (pytest.approx(977.4 / 1.09, rel=1e-3), None)
    assert Search.near(1000, 0.1, 20).after(UNSEEN).after(UNSEEN).end is End.COMMITS, "no lower rate would help"


def test_a_search_without_an_end_stops_when_its_probes_are_used_up():
    states, tried = searched(Search.near(1000, 0.05, 4), lambda rate: SUSTAINED)
    assert (states[-1].end, states[-1].high, len(tried)) == (End.PROBES, None, 4)
    assert states[-1].low == tried[-1][0]


def reports(*counts):
    """What a query had read, every half second."""
    return [(number * 500_000_000, count) for number, count in enumerate(counts)]


def test_the_service_rate_is_that_between_reports():
    assert service_rate(reports(0, 500, 1000)) == 1000
    assert service_rate(reports(7, 7)) == 0
    assert service_rate(reports(7)) is service_rate([]) is None


def test_of_a_burst_what_is_read_in_part_of_the_time_between_two_reports_does_not_count():
    assert of_burst(reports(0, 100, 600, 1100, 1110)) == 1000, "it began late in the first, and was done in the last"
    assert of_burst(reports(0, 100, 600)) == 1000, "a batch that begins when the one before has ended"
    assert of_burst(reports(0, 500)) == 1000
    assert of_burst(reports(0)) is None, "nothing was reported"


def lag_by_commit(rate, capacity, random, *, overhead_s=0.1, seconds=20.0, paused=()):
    """Lag after each micro-batch of a query that does `capacity` records/s; batches in `paused` take 2 s longer."""
    now_s = read = 0.0
    found = []
    while now_s < seconds:
        due = rate * now_s
        busy_s = overhead_s + (due - read) / capacity * random.uniform(0.9, 1.1) + 2.0 * (len(found) in paused)
        now_s += max(busy_s, INTERVAL_S)
        read = due
        found.append((now_s, rate * now_s - read))
    return found


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("share", "outcome"), [(0.3, SUSTAINED), (0.8, SUSTAINED), (1.1, NOT_SUSTAINED), (3.0, NOT_SUSTAINED)]
)
def test_micro_batches_keep_up_below_their_capacity_only(seed, share, outcome):
    lag = lag_by_commit(share * 5000, 5000, np.random.default_rng(seed))
    assert judge(share * 5000, INTERVAL_S, lag, lag).outcome is outcome


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("share", [0.5, 0.95, 1.0, 1.05, 2.0])
def test_reports_of_a_stream_show_whether_it_keeps_up(seed, share):
    """Twice a second, of a query that is never more than noise behind as long as it is fast enough."""
    random = np.random.default_rng(seed)
    moments = np.arange(0, 10, 0.5)
    lag = max(share - 1, 0) * 5000 * moments + random.exponential(0.1 * share * 5000, moments.size)
    samples = list(zip(moments.tolist(), lag.tolist(), strict=True))
    outcome = NOT_SUSTAINED if share > 1 else SUSTAINED
    assert judge(share * 5000, INTERVAL_S, samples, samples).outcome is outcome


def test_a_pause_that_the_query_makes_up_for_does_not_count():
    lag = lag_by_commit(2500, 5000, np.random.default_rng(1), paused=(8,))
    assert max(records for _, records in lag) > 2.0 * 2500
    assert judge(2500, INTERVAL_S, lag, lag).outcome is SUSTAINED


def test_a_lag_that_is_high_but_does_not_grow_is_not_sustained():
    high = [(float(second), 2.1 * 1000) for second in range(10)]
    judged = judge(1000, INTERVAL_S, high, high)
    assert (judged.outcome, judged.growth) == (NOT_SUSTAINED, 0)
    assert judged.why == "lag is worth 2.1 s of input"


def test_a_generator_that_falls_behind_is_never_taken_for_a_query_that_does():
    lag = [(float(second), 300.0 * second) for second in range(10)]
    read_all = [(float(second), 50.0) for second in range(10)]
    assert judge(1000, INTERVAL_S, lag, read_all).outcome is VOID
    left_some = [(float(second), 100.0 * second) for second in range(10)]
    assert judge(1000, INTERVAL_S, lag, left_some).outcome is NOT_SUSTAINED, "it could not even follow what came"


@pytest.mark.parametrize(("unread", "outcome"), [(1000.0, VOID), (4000.0, NOT_SUSTAINED)])
def test_what_is_left_at_the_end_is_the_doing_of_who_has_most_of_it(unread, outcome):
    before = [(float(second), 10.0) for second in range(10)]
    assert judge(1000, INTERVAL_S, [*before, (14.0, 4100.0)], [*before, (14.0, unread)]).outcome is outcome


@pytest.mark.parametrize(("unread", "outcome"), [(1900.0, UNSEEN), (2100.0, NOT_SUSTAINED)])
def test_of_two_commits_only_the_last_is_known(unread, outcome):
    samples = [(3.0, 10.0), (9.0, unread)]
    judged = judge(1000, INTERVAL_S, samples, samples)
    assert (judged.outcome, judged.growth) == (outcome, None)


@pytest.mark.parametrize(
    ("lags", "outcome"), [((1000, 1500, 1900, 3900), UNSEEN), ((1000, 2100, 2200, 2300), NOT_SUSTAINED)]
)
def test_of_four_samples_the_level_is_known_but_not_whether_lag_grows(lags, outcome):
    samples = [(2.0 * number, float(lag)) for number, lag in enumerate(lags)]
    judged = judge(1000, INTERVAL_S, samples, samples)
    assert (judged.outcome, judged.growth) == (outcome, None)


def test_growth_is_the_slope_whatever_a_quarter_of_the_samples_say():
    samples = [(float(s), 40.0 * s + 7) for s in range(20)]
    spoilt = [(s, 1e9 if s % 4 == 1 else records) for s, records in samples]
    assert growth(samples) == pytest.approx(40)
    assert growth(spoilt) == pytest.approx(40, abs=5)
    assert growth(samples[:2]) is None


@pytest.mark.extended
def test_a_window_of_a_day_has_no_more_pairs_than_can_be_looked_at():
    lag = [(float(s), 40.0 * s + noise) for s, noise in enumerate(np.random.default_rng(2).exponential(500, 86_400))]
    assert len(_slopes(_thinned(lag))) < MOST_SAMPLES**2 / 2
    assert growth(lag) == pytest.approx(40, rel=1e-3)
    assert grows(lag, 1000)
    assert not grows(lag, 10_000), "too little to count"
    assert growth(lag[:MOST_SAMPLES]) == np.median(_slopes(lag[:MOST_SAMPLES])), "not thinned"


@pytest.mark.parametrize("count", range(3, 8))
def test_of_all_orders_of_a_few_samples_one_in_fifty_at_most_looks_like_growth(count):
    """All orders are equally likely by chance. Of four even the ascending one is one in 24; of five, one in 120."""
    found = [grows(list(enumerate(100.0 * np.array(order))), 1.0) for order in permutations(range(count))]
    assert np.mean(found) <= 0.02
    assert any(found) == (count > 4)


def test_chance_seldom_looks_like_growth_and_growth_is_seen_through_it():
    noise = np.random.default_rng(1).exponential(500, (500, 20))
    moments = np.arange(20) / 2

    def share_that_grows(slope, rate):
        return np.mean([grows(list(zip(moments, lag + slope * moments, strict=True)), rate) for lag in noise])

    assert share_that_grows(0, 1000) < 0.035, "a fiftieth, and two and a half deviations of 500 draws"
    assert share_that_grows(1000, 1000) == 1
    assert share_that_grows(1000, 100_000) < 0.04, "too little to count"


def test_a_probe_is_cut_short_only_when_lag_is_far_beyond_the_limit():
    assert not is_overwhelmed(1000, INTERVAL_S, 4900)
    assert is_overwhelmed(1000, INTERVAL_S, 5100)
    assert not is_overwhelmed(1000, 10 * INTERVAL_S, 49_000)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("first", [50, 800, 20_000])
def test_search_and_judgement_find_the_capacity_of_a_noisy_query(seed, first):
    """A batch of rate x T takes overhead + rate x T / capacity; with lag worth 2 T allowed, it may take 2 T."""
    random = np.random.default_rng(seed)
    overhead_s, capacity = 0.1, 6000.0

    def outcome(rate):
        settled = lag_by_commit(rate, capacity, random, overhead_s=overhead_s, seconds=40.0)
        watched = [sample for sample in settled if sample[0] > 10]
        return judge(rate, INTERVAL_S, watched, watched).outcome if watched else NOT_SUSTAINED

    states, _ = searched(Search.near(first, 0.05, 30), outcome)
    low, high = states[-1].low, states[-1].high
    truth = capacity * (1 - overhead_s / (2 * INTERVAL_S))
    assert states[-1].end is End.CLOSED
    assert low < truth * (1 + MOST_GROWTH) * 1.03, "3 % for what chance does to batches of 20 s"
    assert high > truth * 0.92
