"""The checks of a run by subject: each module has the data frames that its checks judge, and `CHECKS`.

`results.checks.catalogue` lists all checks in order.
"""
