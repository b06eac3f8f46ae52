"""Summaries of runs in plain numbers: findings of a run, metrics that compare runs, the index of runs."""
