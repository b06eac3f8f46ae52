"""Connections: `wire` never blocks, `admission` lets in who has the `secret` of the run, `mesh` joins the slots.

`messages` are what a slot and the coordinator's server tell each other, besides what partitions do.
"""
