"""Predictions from measurements: the process of a run, its replay over the actual faults, eq. 10, recommendations."""
