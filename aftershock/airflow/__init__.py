"""The Airflow side of runs: what the DAGs' tasks call, the trigger form, and Airflow itself on one machine."""
