"""The pages that Airflow shows: a list of runs, and one run with its verdicts, plots and tables.

Presentation only: whatever is computed is computed by `results` and read here through `results.store`.
May import `results`, `experiments.errors` and Airflow's security helpers; nothing imports this package but Airflow.
`.airflowignore` keeps Airflow from loading any module here as a plugin but `aftershock_plugin`.
"""
