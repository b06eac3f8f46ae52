"""The state machine of the coordinator: `coordinator` joins the parts.

`placement` says where partitions are and `copies` where their copies are, which `copying` has made and closed.
`history` has the checkpoints that are stored, `rounds` the round that is under way. `recoveries_underway` has the
recoveries that have begun, `line_orders` the messages to the partitions that roll back. `absent_partitions` and
`waiting_partitions` decide who goes on without a lost partition and who must not wait for it; `last_announced`
remembers what the partitions know of that. `line_record` is what outlives the driver; `write_ahead` holds effects back
in the `outbox` until it is written.
"""
