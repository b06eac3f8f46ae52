"""Stochastic simulation of checkpoint and restart, with which the utilization model is compared.

Source: sections 3.5 and 4.4 of the `utilization` paper.
"""
