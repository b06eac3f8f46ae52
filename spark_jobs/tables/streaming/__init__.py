"""The tables of runs of Structured Streaming: micro-batches, and Spark's event logs.

`batches` has the committed micro-batches, `event_logs` reads the logs, `query_events` tells which of their events are
the query's, `executors` and `spark_tasks` find in them when executors came and which tasks ran.
"""
