"""The checkpoint-and-restart process replayed over given faults: what a run measures whose faults are known.

May import `models.inputs` and numpy only.
"""
