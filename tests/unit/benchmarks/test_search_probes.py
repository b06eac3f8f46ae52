"""A search that begins near a measured service rate takes about half the time, and finds the same."""

import pytest

from benchmarks.testbed.search_probes import searches

COUNT = 160


@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_a_search_near_a_service_rate_takes_half_as_long_and_finds_the_same(noise):
    near, doubling = (searches(way, noise, COUNT) for way in ("near a service rate", "doubling"))
    assert near["probes"].mean() <= 0.6 * doubling["probes"].mean()
    assert near["seconds"].mean() <= 0.6 * doubling["seconds"].mean()
    assert near["closed"].mean() >= doubling["closed"].mean()
    assert near["holds"].mean() >= doubling["holds"].mean() - 0.1
    assert abs(near["off"].median() - doubling["off"].median()) < 0.03
