"""The protocol testbed: a small streaming runtime whose fault tolerance is a plug-in.

Everything but `runtime` and `driver` is pure: events go in, effects come out, and no clock, thread, socket or random
number is touched. So the same code runs in `simulation` (seeded schedules, crashes at any step) and in `runtime`,
which carries the effects out in the slots that Spark's tasks host.

`graph` declares a dataflow, `layout` makes operator partitions and channels of it, `drawing` draws it. `operators` work
on Arrow record batches with `state`. `frames` travel on channels, `control` between partitions and coordinator, read
by `shapes`. `partition` and `coordinator` are the two state machines; `protocols` plug into both; `checkpoints` has
what the coordinator knows and finds the recovery line; `store` keeps what must survive, under a `seal`.

May import `experiments`, pyarrow and numpy, `seal` also cryptography; `queries` also `workloads`; `runtime` says what
else it may. See docs/reference/testbed.md.
"""
