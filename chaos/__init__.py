"""Faults: random processes, the plan drawn from them before a run, and its injection with proof of death and healing.

`chaos.plan` is pure: it may import the standard library and `experiments` only.
Nothing here knows of Airflow or of the workloads.
"""
