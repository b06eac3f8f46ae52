"""Whether runs became better or worse: a set of runs compared with earlier runs of the same experiment and machine.

`bootstrap` and `judging` are the statistics of one comparison and of many at once, `change_points` those of a whole
history, `history` says which runs are compared with which, `records` keeps what was found. The method, and how often it
errs: docs/reference/regressions.md.
"""
