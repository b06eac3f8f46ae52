"""Results of runs: store (`runs`), schemas (`tables`), findings and metrics (`summary`), `predictions`, `checks`,
comparisons (`regression`), and reports, charts and lists (`views`).

From `testbed` it imports the layout of dataflows, for plans of copies.
"""
