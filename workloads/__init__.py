"""What is run: event generators, queries, and a fault-free oracle for each query.

Each workload is a package with `records(spec, schedule)` (its input by position), `query(records, spec)` (a streaming
DataFrame) and `oracle(records, spec)` (the exact results, by other means, as a batch DataFrame); `inputs` and `queries`
find them by the spec, and `results` says what the results of all look like. May import `experiments`,
`journal` and `infra.broker`.
"""
