"""The steps of a run: what each does on the cluster, what a live run is, and how its end is made sure of.

`steps` has them in order. `live_run` is the run that they work on, `followed` its journals. The steps call `query`,
`own_job`, `batch_job` and `sustainable`; `derive` makes the results from the raw logs, `ending` ends the run.
"""
