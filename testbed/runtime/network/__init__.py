"""Connections: `wire` never blocks, `admission` admits only peers with the run's `secret`, `mesh` connects the slots.

`messages` are those between a slot and the coordinator's server, besides the messages of partitions.
"""
