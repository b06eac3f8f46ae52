"""Checks whose verdict depends on how busy the machine is: no test holds a run to them, benchmarks do."""

CHECKS = {"faults.on_time"}  # benchmarks/kill_lateness.py
