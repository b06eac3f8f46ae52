"""Results of runs: store (`runs`), schemas (`tables`), findings and metrics (`summary`), `predictions`, `checks`,
comparisons (`regression`), and reports, charts and lists (`views`).

May import `experiments` and `models`; knows nothing of Airflow, clusters or faults.
"""
