"""The dataflow testbed for real: what carries out the effects of partitions and coordinator in the world.

`job` says what to run. `slot` is what a Spark task does for as long as the run lasts: `hosting` keeps its partitions at
work, `mesh` has the connections to the other slots, `background` the threads that write and publish. `server` is the
coordinator's side, in the program that Spark runs as driver. `admission` lets in who has the `secret` of the run;
`validation` says whether what a slot tells fits the dataflow. `sources` and `sinks` are where records come from and go.

`hosting` joins the parts of a slot: `hosted` (the partitions, and whose turn it is), `exchange` (frames and credit),
`inputs` and `outputs` (of sources and sinks), `storing` and `restoring` (checkpoints), `timers`, and `reporting` (what
the coordinator is told).

May import `testbed`, `workloads`, `journal` and `experiments`; only the program itself knows Spark.
"""
