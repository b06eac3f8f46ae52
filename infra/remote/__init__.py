"""Drivers that work over sessions: the agent on each host, the sessions (SSH or exec), and the part they share."""
