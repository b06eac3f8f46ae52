"""The top layer: it joins all other packages into commands and runs.

`cli` is the command line, `run` has the steps of a run, `airflow` is what DAGs call, `watch` shows live runs and cleans
up after dead ones, `reference` generates documentation.
"""
