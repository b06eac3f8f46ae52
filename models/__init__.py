"""What the papers predict: pure functions from measured or assumed parameters to figures to compare runs with.

The models know nothing of clusters, Spark or the run store. See docs/reference/models.md.
"""
