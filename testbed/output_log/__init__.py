"""Continuous eventual checkpointing (`cec`): the checkpoint of an operator lies scattered in its persisted output.

    blocks      what one step of an operator did, as bytes; blocks make segments, the objects of the log
    log         writes segments and says which are no longer needed
    reading     reads segments backwards, past those that are damaged
    extent      how far back a recovery would have to read now, and how much it would replay
    policies    when to save the part of the oldest window again
    eventual    the eventual checkpoint, found by reading backwards
    logged      an operator with its log: works, saves parts, is restored

Pure but for the object store that it is given: no clock, thread or random number. Imports `operators` and `stores`.
"""
