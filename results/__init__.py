"""Results of runs: store (`runs`), schemas (`tables`), findings and metrics (`summary`), `predictions`, `checks`,
comparisons of runs (`regression`, `protection`), and reports, charts and lists (`views`).

From `testbed` it imports the layout of dataflows, for plans of copies.
"""
