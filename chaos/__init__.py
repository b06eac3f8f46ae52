"""Faults: random processes, the plan drawn from them before a run, and its injection with proof of death and healing.

`chaos.injector` and its parts in `chaos.injection` import `infra` and `journal`. All else is pure and may import
`experiments` only, `chaos.goodness` numpy and scipy too. Nothing here knows of Airflow or of the workloads.
"""
