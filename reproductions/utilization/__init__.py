"""`utilization`: formulas, simulations, gains of one interval over another, and the measured table I."""
