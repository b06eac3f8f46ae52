"""Where records come from and go: `sources` and `sinks`, and `topics`, which are both ends in Kafka.

`shared_input` reads a partition of the input once for all sources of a slot, by a `topic_reader`; `topic_polls` and
`batch_polls` are what a poll has brought. `kafka_clients` has the settings of both ends.
"""
