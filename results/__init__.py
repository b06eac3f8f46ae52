"""What a run showed: the run store, the table schemas, the checks with their verdicts, and the report.

May import `experiments` and `models`; knows nothing of Airflow, clusters or faults.
"""
