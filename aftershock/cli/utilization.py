"""`aftershock predict utilization`, `aftershock simulate utilization`: the model, and its process simulated.

Both take the same options, but only a simulation needs an interval. Times are in seconds and rates per second.
"""

from __future__ import annotations

import argparse
from typing import Any, TypedDict

from aftershock.cli.declare import PASSED, add_seed, command, number, require_seed, show
from experiments.wording import significant

SYSTEM = {
    "failure-rate": "lambda, failures of the whole system [1/s]",
    "checkpoint-cost": "c, the time that a checkpoint takes [s]",
    "recovery-time": "R, detection and restart [s]",
}
INTERVAL = "T, from one checkpoint's end to the next; above the cost [s]"


def add_prediction(commands: Any) -> None:
    """Declare `aftershock predict utilization`."""
    text = "predict utilization (times in s, rates per s)"
    declared = command(commands, "utilization", text, predict_utilization)
    _add_system(declared)
    declared.add_argument("--interval", type=float, help=f"{INTERVAL}; without it, only the best one is predicted")


def add_simulation(commands: Any) -> None:
    """Declare `aftershock simulate utilization`."""
    text = "simulate utilization under exponential failures (times in s, rates per s)"
    declared = command(commands, "utilization", text, simulate_utilization)
    _add_system(declared)
    declared.add_argument("--interval", type=float, required=True, help=INTERVAL)
    declared.add_argument("--runs", type=int, default=250, help="number of simulated runs; default 250")
    declared.add_argument("--failures", type=int, default=2000, help="mean number of failures in a run; default 2000")
    add_seed(declared)


def _add_system(declared: argparse.ArgumentParser) -> None:
    for name, text in SYSTEM.items():
        declared.add_argument(f"--{name}", type=number, required=True, help=text)
    text = "delta, delay of a checkpoint's token per hop [s]; matters from depth 2 on; default 0.0"
    declared.add_argument("--hop-delay", type=float, default=0.0, help=text)
    declared.add_argument("--depth", type=int, default=1, help="n, operators on the longest path; default 1")


class _System(TypedDict):
    """The options as the models name them."""

    failure_rate: float
    checkpoint_cost: float
    recovery_time: float
    hop_delay: float
    depth: int


def _system(arguments: argparse.Namespace) -> _System:
    return _System(
        failure_rate=arguments.failure_rate,
        checkpoint_cost=arguments.checkpoint_cost,
        recovery_time=arguments.recovery_time,
        hop_delay=arguments.hop_delay,
        depth=arguments.depth,
    )


def predict_utilization(arguments: argparse.Namespace) -> int:
    """Predict utilization at the interval, if one is given, the optimal interval, and what older models would advise.

    All intervals are T, as `--interval` is. Daly prints his higher order without the checkpoint, so c is added.
    """
    from models import utilization as model

    rate, cost, recovery = arguments.failure_rate, arguments.checkpoint_cost, arguments.recovery_time
    system, interval = _system(arguments), arguments.interval
    model.check_inputs(**system, interval=interval)
    intervals = {
        "young": float(model.young(rate, cost)),
        "daly": float(model.daly(rate, cost, recovery)),
        "daly_higher_order": float(model.daly_higher_order(rate, cost)) + cost,
        "zhuang": float(model.zhuang(rate, cost, recovery)),
    }
    at_interval = None if interval is None else float(model.utilization(**system, interval=interval))
    best_s = float(model.optimal_interval(rate, cost))
    at_best = float(model.optimal_utilization(rate, cost, recovery, arguments.hop_delay, arguments.depth))
    found = {"utilization": at_interval, "optimal_interval": best_s, "optimal_utilization": at_best}
    lines = [] if at_interval is None else [f"utilization at T = {interval:g} s    {significant(at_interval)}"]
    lines += [
        f"optimal interval T*        {significant(best_s)} s",
        f"utilization at T*          {significant(at_best)}",
        "other models' intervals    "
        + ", ".join(f"{name} {significant(value)} s" for name, value in intervals.items()),
    ]
    show(arguments, found | {"intervals": intervals}, "\n".join(lines))
    return PASSED


def simulate_utilization(arguments: argparse.Namespace) -> int:
    """Simulate the process that the model describes, and show both."""
    from models.simulation.simulate import simulate
    from models.utilization import utilization

    require_seed(arguments.seed)
    system, interval = _system(arguments), arguments.interval
    simulated = simulate(
        **system, interval=interval, runs=arguments.runs, failures=arguments.failures, seed=arguments.seed
    )
    found = {
        "mean": simulated.mean,
        "std": simulated.std,
        "runs": simulated.runs,
        "model": float(utilization(**system, interval=interval)),
    }
    lines = [
        f"simulated utilization    {significant(found['mean'])}   mean of {found['runs']} runs",
        f"standard deviation       {significant(found['std'])}   of a run of {arguments.failures} failures on average",
        f"standard error           {significant(simulated.standard_error)}",
        f"model, eq. 10            {significant(found['model'])}",
    ]
    show(arguments, found, "\n".join(lines))
    return PASSED
