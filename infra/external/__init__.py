"""The external driver: hosts are those of a cluster that is already there, by commands of its user.

The cluster is neither created nor destroyed. What a run makes there (topics, checkpoints) goes with the run, and a host
that it struck is brought back.
"""
