"""Hosts that are asked over a session: the agent at the far end, the sessions, and what a driver does through them."""
