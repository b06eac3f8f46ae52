"""Predictions from measurements: the process of a run, its replay over the actual faults, and eq. 10."""
