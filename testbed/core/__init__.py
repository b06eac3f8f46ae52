"""The state machines of the testbed, coordinator and partition, and their parts.

    dataflow/     a dataflow as it is declared, and its operator partitions and channels
    partition/    the state machine of an operator partition
    by_batch/     the same for partitions that work batch by batch
    coordinator/  the state machine of the coordinator

Pure: events go in, effects come out. No module here touches a clock, a thread, a file or a socket. Only `seal`
draws a random number, one for each object that a store writes.

`frames` travel on channels, cut and joined by `ranges`, and wait in `segments` if they are too many for memory.
`control` messages go between partitions and coordinator, and `shapes` reads them. `effects` are what both request from
their caller. `protocol` is the interface of protocols, `recovery` that of recovery strategies. `checkpoints` finds
recovery lines among the stored checkpoints. `seal` proves that stored bytes are unchanged.
"""
