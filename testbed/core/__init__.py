"""The state machines of the testbed, coordinator and partition, and all that they are made of.

Pure: events go in, effects come out. No module here touches a clock, a thread, a file, a socket or a random number.

`graph` declares a dataflow, `layout` makes operator partitions and channels of it, `partitioning` says which channel a
record takes, `drawing` draws it, `chaining` fuses operators. `frames` travel on channels, cut and joined by `ranges`;
`control` messages go between partitions and coordinator, read by `shapes`. `protocol` is the interface of protocols,
`recovery` that of recovery strategies; `checkpoints` and `history` have what the coordinator knows of checkpoints,
`placement` where partitions are, and `copies` where their copies are.

`partition` joins the parts of an operator partition: `intake` (frames in), `source_input` (what a source reads),
`processing` (the operator), `sending` (frames out), `links` (the two ends of a channel), `progress` (counts and event
time), `snapshots` and `readings` (checkpoints and logs). `by_batch` has the parts of one that works batch by batch.
"""
