"""`ppa`: plans of copies, recovery latency by technique, what checkpoints cost, and the worth of tentative output."""
