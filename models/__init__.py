"""What the papers predict: pure functions from measured or assumed parameters to figures that a run is held against.

May import numpy, scipy and `experiments.errors`. Knows nothing of Airflow, Spark, clusters or the run store.
"""
