"""Long measurements of speed, cost and reliability. `python -m benchmarks.FOLDER.NAME` runs one.

speed/          short ones, in pytest: what must stay fast
testbed/        the protocol testbed: throughput, latency, memory, pauses, real kills
engines/        NexMark on Structured Streaming, and comparisons of engines on the same queries
injector/       how late faults come
orchestration/  what Aftershock itself costs, and long soaks of it
regressions/    how often verdicts on nightly runs err, real and simulated
"""
