"""Sends the input to its topics, each record when it is due.

`generator` is the service that does it, with the configuration in `load_config`. `feeds` finds the sender of a
workload: `input_sender` sends record by record, `batch_sender` in Arrow batches; `producing` has their common part.
"""
