"""Results of runs: store (`runs`), schemas (`tables`), findings and metrics (`summary`), `predictions`, `checks`,
comparisons (`regression`), and reports, charts and lists (`views`).

May import `experiments` and `models`, and of `testbed` what a dataflow looks like, which plans for copies need; knows
nothing of Airflow, clusters or faults.
"""
