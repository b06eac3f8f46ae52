"""Structured Streaming queries, in micro-batch and real-time mode."""
