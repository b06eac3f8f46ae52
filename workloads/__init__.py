"""The workloads: event generators, queries, and a fault-free oracle for each query.

Each workload has `records(spec, schedule)` (its input by position) and `oracle(records, spec)` (the exact results,
computed in another way, as a batch DataFrame). Those that Spark runs also have `query(records, spec)` (a streaming
DataFrame); `testbed.queries` has the others. `inputs` and `queries` find these functions by the spec; `results` says
what all results look like. `sending/` sends the input to its topics.
"""
