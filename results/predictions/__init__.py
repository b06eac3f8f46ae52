"""Predictions for a run from what it measured: its process, its replay over the actual faults, and the long run."""
