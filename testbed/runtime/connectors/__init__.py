"""Sources and sinks (`sources`, `sinks`), and both for Kafka (`topics`).

`shared_input` reads a partition of the input once for all sources of a slot, with a `topic_reader`. `topic_polls` and
`batch_polls` are the results of polls. `kafka_clients` has the settings of Kafka clients.
"""
