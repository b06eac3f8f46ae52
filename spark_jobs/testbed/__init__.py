"""The driver program of the protocol testbed: a Spark stage whose tasks are the worker slots."""
