"""Faults: random processes, the plan drawn from them before a run, and its injection with proof of death and healing.

`injector` and its parts in `injection/` act on a cluster. The other modules have no side effects.
"""
