"""The common part of drivers that reach hosts over sessions: the agent on each host, and the sessions (SSH or exec)."""
