"""The face of the project: `cli` (the command line), `watch` (live and dead runs), `airflow` and `run` (the steps).

Each may import those that come after it. The top layer: it may import everything, and only `dags` and `plugins` import
it.
"""
