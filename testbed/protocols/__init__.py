"""The protocols, by which a dataflow tolerates faults: one class each, behind the interface of `core.protocol`.

The runtime knows no protocol by name; `by_name` finds the protocol of an experiment.
"""

from experiments.errors import BadInput
from testbed.core.protocol import Protocol, Runtime, Unprotected
from testbed.protocols.batch_aligned import BatchAligned
from testbed.protocols.communication_induced import CommunicationInduced
from testbed.protocols.coordinated import Coordinated
from testbed.protocols.output_logged import OutputLogged
from testbed.protocols.uncoordinated import Uncoordinated

PROTOCOLS: dict[str, type[Protocol]] = {
    each.name: each
    for each in (Unprotected, Coordinated, Uncoordinated, CommunicationInduced, BatchAligned, OutputLogged)
}


def by_name(name: str) -> type[Protocol]:
    """The protocol of this name; raises `BadInput` if there is none."""
    if name not in PROTOCOLS:
        raise BadInput("protocol", name, ", ".join(PROTOCOLS))
    return PROTOCOLS[name]


__all__ = ["PROTOCOLS", "Protocol", "Runtime", "by_name"]
