"""Measurements that take their time: how fast, how much, how often. `python -m benchmarks.FOLDER.NAME` runs one.

speed/          short ones, in pytest: what must stay fast
testbed/        the protocol testbed: throughput, latency, memory, pauses, real kills
engines/        NexMark on Structured Streaming, and the same queries on any engine beside each other
injector/       how late faults come
orchestration/  what Aftershock itself costs, and long soaks of it
regressions/    nights, real and simulated, and what the verdicts make of them
"""
