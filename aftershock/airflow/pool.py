"""The pool of Airflow for what must not be disturbed: runs that are measured, and what would take their cores."""

RUNS_POOL = "aftershock_runs"
SLOTS = 1
# a run that is waited for is a deferred task, and takes its slot all the same
CREATION = ["pools", "set", RUNS_POOL, str(SLOTS), "runs, one at a time", "--include-deferred"]
