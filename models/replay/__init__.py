"""The checkpoint-and-restart process replayed over given faults: what a run measures whose faults are known."""
