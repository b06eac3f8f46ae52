"""The Airflow pool for runs that are measured, and for tasks that would take their cores."""

RUNS_POOL = "aftershock_runs"
SLOTS = 1
# a run that is waited for is a deferred task, and takes its slot all the same
CREATION = ["pools", "set", RUNS_POOL, str(SLOTS), "runs, one at a time", "--include-deferred"]
