"""The PySpark programs that a cluster runs: streaming queries, and batch jobs that turn raw logs into tables.

May import `experiments`, `infra.journal`, `workloads` and `results.schema`; knows nothing of Airflow.
"""
