"""The face of the project: the command line, the steps of a run, and how Airflow orchestrates them.

The top layer: it may import everything, and only `dags` and `plugins` import it.
"""
