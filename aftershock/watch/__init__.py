"""Shows the state of a live run, and cleans up after dead runs."""
