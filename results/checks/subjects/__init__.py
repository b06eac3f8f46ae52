"""The checks of a run by subject: each module has the frames that its checks look at, and `CHECKS`.

May import what `results.checks` may; `results.checks.catalogue` lists all checks in order.
"""
