"""Measured figures of `ppa`: recovery latency by technique, and what checkpoints cost."""
