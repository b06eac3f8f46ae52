"""What is run: event generators, queries, and a fault-free oracle for each query.

Each workload is a package with `passages(spec)` (its input), `query(input, spec)` (a streaming DataFrame) and
`oracle(input, spec)` (the exact output, by other means, as a batch DataFrame). May import `experiments` only.
"""
