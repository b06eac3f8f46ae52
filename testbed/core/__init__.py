"""The state machines of the testbed, coordinator and partition, and all that they are made of.

    dataflow/     a dataflow as it is declared, and the operator partitions and channels that are made of it
    partition/    the state machine of an operator partition
    by_batch/     the same for partitions that work batch by batch
    coordinator/  the state machine of the coordinator

Pure: events go in, effects come out. No module here touches a clock, a thread, a file, a socket or a random number.

`frames` travel on channels, cut and joined by `ranges`; `control` messages go between partitions and coordinator, read
by `shapes`; `effects` are what both ask of the world. `protocol` is the interface of protocols, `recovery` that of
recovery strategies. `checkpoints` says what is known of those that were taken; `seal` proves whether stored bytes
are as they were written.
"""
