"""The features of a protocol (table I of `checkmate`), found by calling its hooks."""

from __future__ import annotations

from testbed.core.protocol import Protocol
from testbed.protocols.acting import seen

FEATURES = (
    "blocking markers",
    "in-flight logging",
    "deduplication required",
    "message overhead",
    "independent checkpoints",
    "straggler stalls",
    "unused checkpoints",
    "forced checkpoints",
)


def features(protocol: type[Protocol]) -> dict[str, bool]:
    """By feature, in the order of the table, whether the protocol has it.

    A hook makes a feature only if it does something: one that is overridden and empty does not count. The runtime logs
    what is sent if the class asks for it; logs are replayed, so that data comes twice. A round is over only when the
    last partition has its part, so a straggler holds all others up. A line that is not the last one common to all
    leaves checkpoints behind it.
    """
    has = seen(protocol) | dict.fromkeys(("in-flight logging", "deduplication required"), protocol.logs)
    return {feature: has[feature] for feature in FEATURES}
