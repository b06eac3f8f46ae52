"""The PySpark programs that a cluster runs: streaming queries, and batch jobs that turn raw logs into tables.

`streaming` has the queries of Structured Streaming and the runner of own jobs, `testbed` the driver program of the
protocol testbed, `tables` the batch job. `guard` decides who may connect to PySpark's own ports.
"""
