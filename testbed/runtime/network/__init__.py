"""Connections: `wire` never blocks, `admission` lets in who has the `secret` of the run, `mesh` joins the slots.

`messages` are those between a slot and the coordinator's server, besides the messages of partitions.
"""
