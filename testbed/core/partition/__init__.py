"""The state machine of an operator partition: `partition` joins the parts.

`intake` has the frames that come in, `source_input` what a source reads, `processing` the operator, `sending` the
frames that go out, `links` the two ends of a channel, `counts_and_watermarks` counts and event time, `snapshots` and
`readings` checkpoints and logs. `partition_status` tells others how far a partition is.
"""
