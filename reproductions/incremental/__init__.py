"""`incremental`: orders of recovery, available queries, relative latency, repeated replays, and what order costs."""
