"""Stochastic simulation of checkpoint and restart, to hold the utilization model against.

Source: sections 3.5 and 4.4 of the `utilization` paper.
"""
