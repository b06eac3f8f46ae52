"""The checks of a run by subject: each module has the frames that its checks look at, and `CHECKS`.

`results.checks.catalogue` lists all checks in order.
"""
