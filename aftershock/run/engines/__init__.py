"""The engines, which execute the query of a run. All have the interface `engine.Engine`.

`choice` finds the engine of an experiment. `structured_streaming`, `dataflow` and `own_job` are the engines; `staging`
brings the files of an own job onto the cluster. The steps of a run import the engines, not the other way round.
"""
