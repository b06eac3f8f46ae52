"""The PySpark programs that a cluster runs: streaming queries, and batch jobs that turn raw logs into tables.

`streaming` has the queries of Structured Streaming, `testbed` the driver program of the protocol testbed, `tables` the
batch job. May import `experiments`, `journal`, `testbed`, `workloads` and `results.tables`; knows nothing of Airflow.
"""
