"""A dataflow in one thread under a seeded schedule: every order of events that channels allow, and crashes anywhere.

`run` has the events, `faults` the faults and their times, `workers` and `network` the partitions and the messages in
flight, and `invariants` what must hold after every step.
"""

from testbed.simulation.faults import CrashMoment, Fault
from testbed.simulation.invariants import InvariantBroken
from testbed.simulation.network import ContentChanged
from testbed.simulation.outcome import Observer, SimulationResult, Stuck
from testbed.simulation.run import Simulation

__all__ = [
    "ContentChanged",
    "CrashMoment",
    "Fault",
    "InvariantBroken",
    "Observer",
    "Simulation",
    "SimulationResult",
    "Stuck",
]
