"""Continuous eventual checkpointing (`cec`): the checkpoint of an operator is spread over its persisted output.

    blocks      the entries of one step of an operator, as bytes; blocks make segments, the objects of the log
    log         writes segments and says which are no longer needed
    reading     reads segments backwards, past those that are damaged
    extent      how far back a recovery would have to read now, and how much it would replay
    lasting     how long a saved part is of use
    policies    when to save the part of the oldest window again
    eventual    the eventual checkpoint, found by reading backwards
    recorded    an operator that records its output and the events of its windows
    logged      such an operator with its log: works, saves parts, is restored

As a protocol of the testbed:

    in_parts    dataflows whose operators have their state in parts
    objects     a log as objects of checkpoints
    snapshots   the checkpoints of a partition that keeps a log
    partition   such a partition

It uses no clock, thread or random number, and no resource but the given object store. Imports `operators`, `stores` and
`core`.
"""
