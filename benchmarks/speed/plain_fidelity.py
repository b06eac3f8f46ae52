"""Output fidelity in plain Python, beside which the models' is timed and checked."""

from __future__ import annotations

from models.topology import InputCorrelation, Topology


def plain_output_fidelity(topology: Topology, failed: list[bool]) -> float:
    """Eqs. 1 to 4, task by task and substream by substream."""
    rates = [rate for operator in topology.operators for rate in operator.output_rates]
    loss = [0.0] * len(rates)
    for operator in topology.operators:
        span = topology.span[operator.name]
        by_stream = []
        for stream in topology.inputs_of[operator.name]:
            sources, targets = (ends.tolist() for ends in topology.links(stream))
            fan_out = dict.fromkeys(sources, 0)
            for source in sources:
                fan_out[source] += 1
            total, lost = dict.fromkeys(targets, 0.0), dict.fromkeys(targets, 0.0)
            for source, target in zip(sources, targets, strict=True):
                rate = rates[source] / fan_out[source]
                total[target] += rate
                lost[target] += rate * loss[source]
            by_stream.append((total, lost))
        for task in range(span.start, span.stop):
            if failed[task]:
                loss[task] = 1.0
            elif by_stream and operator.inputs is InputCorrelation.CORRELATED:
                kept = 1.0
                for total, lost in by_stream:
                    kept *= 1.0 - lost[task] / total[task]
                loss[task] = 1.0 - kept
            elif by_stream:
                loss[task] = sum(lost[task] for _, lost in by_stream) / sum(total[task] for total, _ in by_stream)
    sinks = [task for sink in topology.sinks for task in range(*topology.span[sink.name].indices(len(rates)))]
    return 1.0 - sum(rates[task] * loss[task] for task in sinks) / sum(rates[task] for task in sinks)
