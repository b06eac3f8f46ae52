"""The parts of the injector: its agenda, the strikes that it prepares, the queues of its targets, and the heals.

`chaos.injector` joins them. May import `infra`, `journal` and the pure modules of `chaos`.
"""
