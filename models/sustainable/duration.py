"""How long a search for the sustainable rate takes."""

from __future__ import annotations

USUAL_PROBES = 3  # `benchmarks.testbed.search_probes` counts them
SETTLE_INTERVALS, SETTLE_S = 2.0, 4.0
BURST_INTERVALS, BURST_S = 1.0, 2.0
USUAL_BURSTS = 8.0  # all bursts, and what the query needs to read them, take as long as so many


def settle_s(interval_s: float) -> float:
    """How long a probe waits before it watches lag [s], for a checkpoint interval [s]."""
    return max(SETTLE_INTERVALS * interval_s, SETTLE_S)


def burst_s(interval_s: float) -> float:
    """How long the records of a burst become due [s]."""
    return max(BURST_INTERVALS * interval_s, BURST_S)


def search_s(probes: int, probe_s: float, interval_s: float) -> float:
    """How long a search usually takes that has at most so many probes, which watch lag for `probe_s` [s]."""
    each_s = settle_s(interval_s) + probe_s
    return USUAL_BURSTS * burst_s(interval_s) + min(probes, USUAL_PROBES) * each_s
