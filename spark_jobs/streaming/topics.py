"""The Kafka topics of a run."""

INPUT, OUTPUT = "input", "output"
CALIBRATION_OUTPUT = "calibration-output"
WARM, FULL = "calibration-warm", ("calibration-1", "calibration-2", "calibration-3")
CALIBRATION_TOPICS = (WARM, *FULL, CALIBRATION_OUTPUT)
