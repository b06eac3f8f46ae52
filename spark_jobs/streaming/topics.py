"""The Kafka topics of a run."""

INPUT, OUTPUT = "input", "output"
CALIBRATION_OUTPUT = "calibration-output"
WARM, FULL = "calibration-warm", "calibration-full"
CALIBRATION_TOPICS = (WARM, FULL, CALIBRATION_OUTPUT)
