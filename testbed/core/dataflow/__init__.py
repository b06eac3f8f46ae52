"""A dataflow as it is declared (`graph`), and its layout.

`layout` makes operator partitions and channels, `partitioning` chooses the channel of a record, `chaining` fuses
operators, `drawing` draws the graph.
"""
