"""The result pages in Airflow: runs, comparisons, histories, regressions, reproductions, live runs.

See docs/guides/pages.md.

Presentation only: `results` computes all that is shown, and `aftershock.watch.live` the state of a live run.
Only Airflow imports this package.
`.airflowignore` keeps Airflow from loading any module here as a plugin but `aftershock_plugin`.
"""
