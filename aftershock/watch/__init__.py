"""Live and dead runs: the state of a live run, the abort of one, and the clean-up after dead ones."""
