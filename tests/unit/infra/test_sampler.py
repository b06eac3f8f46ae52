"""When the sampler looks: at fixed moments, however long a look takes."""

from hypothesis import given
from hypothesis import strategies as st

from infra.sampler import PERIOD_NS, next_deadline

START_NS = 7_654_321


def looks(durations_ns, until_ns):
    """The moments at which a sampler looks whose looks last so long, one after the other and over again."""
    at_ns, found = START_NS, []
    while at_ns < START_NS + until_ns:
        found.append(at_ns)
        at_ns = next_deadline(START_NS, at_ns + durations_ns[len(found) % len(durations_ns)])
    return found


@given(st.lists(st.integers(0, PERIOD_NS - 1), min_size=1, max_size=20))
def test_there_is_one_look_a_second_whatever_it_takes(durations_ns):
    found = looks(durations_ns, 240 * PERIOD_NS)
    assert found == [START_NS + second * PERIOD_NS for second in range(240)]


def test_a_look_that_takes_too_long_skips_what_it_missed():
    assert looks([0, 5 * PERIOD_NS // 2], 5 * PERIOD_NS) == [START_NS + second * PERIOD_NS for second in (0, 3, 4)]


@given(st.integers(0, 10**12))
def test_the_next_moment_is_always_to_come(passed_ns):
    assert 0 < next_deadline(START_NS, START_NS + passed_ns) - (START_NS + passed_ns) <= PERIOD_NS
