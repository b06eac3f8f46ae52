"""Which combinations of valid fields cannot run, and why."""
