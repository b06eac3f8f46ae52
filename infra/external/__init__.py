"""The external driver: hosts are those of an existing cluster, reached by commands of its user.

A run neither creates nor destroys the cluster. It removes what it makes there (topics, checkpoints), and heals the
hosts that it strikes.
"""
