"""The Kafka topics of a run."""

from experiments.workload_base import INPUT, OUTPUT

TENTATIVE_OUTPUT = "tentative-output"  # results for which some input was missing, each with its batch
CALIBRATION_OUTPUT = "calibration-output"
WARM, FULL = "calibration-warm", ("calibration-1", "calibration-2", "calibration-3")
CALIBRATION_TOPICS = (WARM, *FULL, CALIBRATION_OUTPUT)

__all__ = ["CALIBRATION_OUTPUT", "CALIBRATION_TOPICS", "FULL", "INPUT", "OUTPUT", "TENTATIVE_OUTPUT", "WARM"]
