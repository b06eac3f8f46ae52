"""Coordinators by batches without anything behind them: their workers have joined, and partitions are ready."""

from testbed.core.control import Ready
from testbed.core.coordinator.coordinator import Coordinator
from testbed.protocols import PROTOCOLS


def joined(layout, recovery, slots, standby=0, spare_lines=1, **options):
    """Workers `w0`, `w1` and so on have joined, each from a host of its own."""
    coordinator = Coordinator(layout, PROTOCOLS["batch-aligned"], slots, spare_lines, recovery, **options)
    for number in range(slots + standby):
        coordinator.on_joined(f"w{number}", f"w{number}")
    return coordinator


def running(layout, recovery, slots, standby=0, lives=(1,), **options):
    """The same once all partitions are ready in these lives, of which a copy has another; no effect is left to take."""
    coordinator = joined(layout, recovery, slots, standby, **options)
    for life in lives:
        for partition in layout.partitions:
            coordinator.on_message(Ready(partition.number, life))
    coordinator.take_effects()
    return coordinator
