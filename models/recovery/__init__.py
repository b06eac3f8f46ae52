"""Recovery plans: which failed partitions to recover first, so that the most important queries come back early.

Source: Su, Zhou, "Incremental Recovery in Distributed Stream Processing Systems" (`incremental`).
"""
