"""Shows the state of a live run, aborts it, and cleans up after dead runs."""
