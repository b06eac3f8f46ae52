"""The state machine of the coordinator: `coordinator` joins the parts.

`placement` knows where partitions are, `copies` where their copies are, and `copying` orders copies to be made and
closed. `history` has the stored checkpoints, `rounds` the current round. `recoveries_underway` has the current
recoveries, `line_orders` the messages to partitions that roll back. `absent_partitions` decides which partitions
continue without a lost one, `waiting_partitions` which senders must not wait; `last_announced` remembers what
partitions were told. `line_record` outlives the driver; `write_ahead` holds effects back in the `outbox` until it is
written.
"""
