"""The Kafka topics of a run, and the place of a message in them."""

from __future__ import annotations

from experiments.workloads.base import INPUT, OUTPUT

TENTATIVE_OUTPUT = "tentative-output"  # results for which some input was missing, each with its batch
CALIBRATION_OUTPUT = "calibration-output"
WARM, FULL = "calibration-warm", ("calibration-1", "calibration-2", "calibration-3")
CALIBRATION_TOPICS = (WARM, *FULL, CALIBRATION_OUTPUT)


def message_place(topic: str, partition: int | str, offset: int | str) -> str:
    """Where a message is, as every error about a message begins. Each may also be a pattern or a format."""
    return f"the topic {topic}, partition {partition}, offset {offset}"


__all__ = [
    "CALIBRATION_OUTPUT",
    "CALIBRATION_TOPICS",
    "FULL",
    "INPUT",
    "OUTPUT",
    "TENTATIVE_OUTPUT",
    "WARM",
    "message_place",
]
