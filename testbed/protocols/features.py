"""What a protocol does, read from its class: the features of table I of `checkmate`."""

from __future__ import annotations

from testbed.core.protocol import Protocol

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

    A hook that a protocol leaves to the base class does nothing. Logs are replayed, so that data comes twice.
    A round is over only when the last partition has its part, so a straggler holds all others up. A line that is not
    the last one common to all leaves checkpoints behind it.
    """
    has = (
        _does(protocol, "on_marker"),
        protocol.logs,
        protocol.logs,
        _does(protocol, "before_send"),
        protocol.on_own_time,
        protocol.in_rounds,
        _does(protocol, "find_line"),
        _does(protocol, "on_message"),
    )
    return dict(zip(FEATURES, has, strict=True))


def _does(protocol: type[Protocol], hook: str) -> bool:
    return getattr(protocol, hook) is not getattr(Protocol, hook)
