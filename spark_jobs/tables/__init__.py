"""The batch job that turns the raw logs of a run into its result tables (`job`), in two stages.

`archive` saves what only the broker holds; `build` makes the tables from the run's directory alone, so that they can
be made again. What is sequential and small is pure Python (timeline, ledger), what grows with the input is Spark.
`streaming/` and `dataflow/` have what is of one engine only.
"""
