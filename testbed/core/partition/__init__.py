"""The state machine of an operator partition: `partition` joins the parts.

`intake` has incoming frames, `source_input` the input of a source, `processing` the operator, `sending` outgoing
frames, `links` the two ends of a channel, `counts_and_watermarks` counts and event time, `snapshots` and `readings`
checkpoints and logs. `overflow` has what returns on a cycle and is too much for memory, `stored_output` hears what the
store says of it. `partition_status` reports the progress of a partition.
"""
