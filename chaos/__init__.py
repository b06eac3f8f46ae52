"""Faults: random processes, the plan drawn from them before a run, and its injection with proof of death and healing.

All but `chaos.injector` is pure and may import `experiments` only, `chaos.goodness` numpy and scipy too; the injector
imports `infra` and `journal`. Nothing here knows of Airflow or of the workloads.
"""
