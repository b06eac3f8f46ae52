"""The batch job that turns the raw logs of a run into its result tables (`job`), in two stages.

`archive` saves the data that only the broker holds. `build` makes the tables from the run's directory alone, so that
they can be made again. Small sequential work is pure Python (timeline, ledger); work that grows with the input is
Spark. `streaming/` and `dataflow/` are for one engine each.
"""
