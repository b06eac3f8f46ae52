"""Measured figures of `incremental`: available queries, relative latency, repeated replays, and what order costs."""
