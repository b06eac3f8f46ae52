"""The pages that Airflow shows: runs, comparisons, histories, regressions, reproductions, live runs (docs/pages.md).

Presentation only: whatever is computed is computed by `results`; what a live run looks like, by `aftershock.live`.
May import these, `experiments.errors` and Airflow's security helpers; nothing imports this package but Airflow.
`.airflowignore` keeps Airflow from loading any module here as a plugin but `aftershock_plugin`.
"""
