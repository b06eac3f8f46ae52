"""A dataflow as it is declared (`graph`), and what is made of it.

`layout` makes operator partitions and channels, `partitioning` says which channel a record takes, `chaining` fuses
operators, `drawing` draws the graph.
"""
