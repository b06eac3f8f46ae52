"""The top layer: the command line, the steps of a run, and what Airflow calls.

`cli` is the command line, `watch` handles live and dead runs, `airflow` is what DAGs call, `run` has the steps.
`reference` generates documentation.
"""
