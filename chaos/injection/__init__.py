"""The parts of the injector: its agenda, the strikes that it prepares, the queues of its targets, and the heals.

`chaos.injector` joins them.
"""
