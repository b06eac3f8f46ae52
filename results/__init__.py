"""Results of runs: store (`runs`), schemas (`tables`), findings and metrics (`summary`), `predictions`, `checks`,
comparisons (`regression`), and reports, charts and lists (`views`).

Of `testbed` it needs what a dataflow looks like, for plans of copies.
"""
