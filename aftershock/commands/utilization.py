"""`aftershock predict utilization`, `aftershock simulate utilization`: the model, and its process simulated.

Both take the same options; times are in seconds and rates per second.
"""

from __future__ import annotations

import argparse
from typing import Any

from aftershock.commands.declare import PASSED, command, show


def add_prediction(commands: Any) -> None:
    text = "predict utilization (times in s, rates per s)"
    _add_system(command(commands, "utilization", text, predict_utilization))


def _add_system(declared: argparse.ArgumentParser) -> None:
    for name in ("failure-rate", "checkpoint-cost", "recovery-time", "interval"):
        declared.add_argument(f"--{name}", type=float, required=True)
    declared.add_argument("--hop-delay", type=float, default=0.0)
    declared.add_argument("--depth", type=int, default=1)


def predict_utilization(arguments: argparse.Namespace) -> int:
    """Predict utilization, the optimal interval, and what older models would advise."""
    from models import utilization as model

    rate, cost, recovery = arguments.failure_rate, arguments.checkpoint_cost, arguments.recovery_time
    model.check_inputs(
        failure_rate=rate,
        checkpoint_cost=cost,
        recovery_time=recovery,
        interval=arguments.interval,
        hop_delay=arguments.hop_delay,
        depth=arguments.depth,
    )
    chain = (arguments.hop_delay, arguments.depth)
    found = {
        "utilization": float(model.utilization(rate, cost, recovery, arguments.interval, *chain)),
        "optimal_interval": float(model.optimal_interval(rate, cost)),
        "optimal_utilization": float(model.optimal_utilization(rate, cost, recovery, *chain)),
        "intervals": {
            "young": float(model.young(rate, cost)),
            "daly": float(model.daly(rate, cost, recovery)),
            "daly_higher_order": float(model.daly_higher_order(rate, cost)),
            "zhuang": float(model.zhuang(rate, cost, recovery)),
        },
    }
    lines = [
        f"utilization at T = {arguments.interval:g} s    {found['utilization']:.4f}",
        f"optimal interval T*        {found['optimal_interval']:.4g} s",
        f"utilization at T*          {found['optimal_utilization']:.4f}",
        "other models' intervals    "
        + ", ".join(f"{name} {value:.4g} s" for name, value in found["intervals"].items()),
    ]
    show(arguments, found, "\n".join(lines))
    return PASSED
