"""The result pages in Airflow: runs, comparisons, histories, regressions, reproductions, live runs.

See docs/guides/pages.md.

Presentation only: `results` computes all figures, and `aftershock.watch.live` the state of a live run. Beside the
pages, `ended_by_hand` listens for tasks whose run nobody waits for any more. Only Airflow imports this package.
`.airflowignore` makes Airflow load only `aftershock_plugin` as a plugin.
"""
