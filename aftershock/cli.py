"""The command line: a thin face over the packages.

With --json exactly one JSON document goes to standard output and everything else to standard error. Exit 0: done and
every verdict passed; 1: a verdict failed or is unknown; 2: bad input; 3: the environment failed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, NoReturn

from experiments.errors import AftershockError, BadInput, EnvironmentFailure

NOT_ALL_PASSED, INTERRUPTED = 1, 130


class Parser(argparse.ArgumentParser):
    """Says what is wrong with the words of a call in one line."""

    def error(self, message: str) -> NoReturn:
        raise BadInput("command line", message, f"see `{self.prog} --help`")


def parser() -> argparse.ArgumentParser:
    top = Parser(prog="aftershock", description="What do failures cost a streaming job, and what should be changed?")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    _benchmark(commands)
    predict = commands.add_parser("predict", help="what a model predicts").add_subparsers(dest="what", required=True)
    _predict_utilization(predict)
    plan = commands.add_parser("plan", help="plans, drawn but not carried out").add_subparsers(
        dest="what", required=True
    )
    _plan_faults(plan)
    results = _command(commands, "results", "list the runs, or show one", show_results)
    results.add_argument("run_id", nargs="?", help="a finished run; without it all are listed")
    serve = commands.add_parser("serve", help="open Airflow with the DAGs and the pages on this machine")
    serve.add_argument("--port", type=int, default=8080)
    serve.set_defaults(run=open_airflow)
    return top


def _command(commands: Any, name: str, text: str, run: Any) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text)
    command.add_argument("--json", action="store_true", help="one JSON document on standard output")
    command.set_defaults(run=run)
    return command


def _benchmark(commands: Any) -> None:
    command = _command(commands, "benchmark", "run an experiment through the benchmark DAG", benchmark)
    command.add_argument("experiment", nargs="?", default="wordcount", help="a YAML file, or a name in experiments/")
    command.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", dest="overrides")


def _predict_utilization(commands: Any) -> None:
    command = _command(commands, "utilization", "predict utilization (times in s, rates per s)", predict_utilization)
    for name in ("failure-rate", "checkpoint-cost", "recovery-time", "interval"):
        command.add_argument(f"--{name}", type=float, required=True)
    command.add_argument("--hop-delay", type=float, default=0.0)
    command.add_argument("--depth", type=int, default=1)


def _plan_faults(commands: Any) -> None:
    command = _command(commands, "faults", "draw the fault plan of a fault spec", plan_faults)
    command.add_argument("faults", help="a YAML file: duration, hosts, processes")
    command.add_argument("--seed", type=int, required=True)


def benchmark(arguments: argparse.Namespace) -> int:
    """Run an experiment and show its result; a run that failed exits as its error says."""
    from aftershock import orchestrate, steps
    from experiments import spec
    from results import store
    from results.document import document
    from results.terminal import summary

    experiment = spec.load(arguments.experiment, arguments.overrides)
    run_id = steps.new_run_id(experiment)
    print(f"run {run_id}", file=sys.stderr)
    airflow_status = None
    try:
        airflow_status = orchestrate.run_dag(experiment.model_dump(mode="json"), run_id)
    finally:
        steps.teardown(run_id, "interrupted before its end")
    if not store.is_finished(run_id):
        log = orchestrate.log_file(run_id)
        raise EnvironmentFailure(f"Airflow ended with status {airflow_status} before the run began", f"see {log}")
    run = store.finished(run_id)
    status = run.status()
    if status["state"] == "failed":
        print(f"aftershock: {status['error']} (its logs: {run.raw})", file=sys.stderr)
        if arguments.json:
            print(json.dumps(status))
        return status["exit_code"]
    _show(arguments, document(run), summary(run))
    print(f"report: {run.report}", file=sys.stderr)
    return 0 if set(run.table("verdicts")["verdict"]) == {"pass"} else NOT_ALL_PASSED


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
    _show(arguments, found, "\n".join(lines))
    return 0


def plan_faults(arguments: argparse.Namespace) -> int:
    """Draw a fault plan and print it."""
    from chaos.plan import load_fault_spec, plan

    if arguments.seed < 0:
        raise BadInput("--seed", arguments.seed, "a whole number, not below 0")
    events = [event.to_json() for event in plan(load_fault_spec(arguments.faults), arguments.seed)]
    rows = [f"{'at [s]':>12}  {'kind':6} {'heal after [s]':>14}  targets (cause)"]
    for event in events:
        targets = f"{', '.join(event['targets'])} ({event['cause']})"
        rows.append(f"{event['at']:12.3f}  {event['kind']:6} {event['heal_after']:14.3f}  {targets}")
    _show(arguments, {"events": events}, "\n".join(rows) if events else "no fault within the duration")
    return 0


def show_results(arguments: argparse.Namespace) -> int:
    """List the finished runs, or show one as the benchmark did."""
    from results import store
    from results.document import document
    from results.listing import listing
    from results.terminal import summary

    if arguments.run_id is None:
        runs = [run.status() for run in store.all_finished()]
        _show(arguments, {"runs": runs}, listing(runs))
        return 0
    run = store.finished(arguments.run_id)
    if run.status()["state"] == "failed":
        _show(arguments, run.status(), f"{run.run_id} failed: {run.status()['error']} (its logs: {run.raw})")
    else:
        _show(arguments, document(run), summary(run))
    return 0


def open_airflow(arguments: argparse.Namespace) -> int:
    """Serve Airflow until it is interrupted."""
    from aftershock.serve import serve

    serve(arguments.port)
    return 0


def _show(arguments: argparse.Namespace, found: dict[str, Any], text: str) -> None:
    print(json.dumps(found) if arguments.json else text)


def main(words: list[str] | None = None) -> int:
    """Run one call; returns its exit code."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    try:
        arguments = parser().parse_args(words)
        return arguments.run(arguments)
    except AftershockError as error:
        print(f"aftershock: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("aftershock: interrupted; nothing of the run is left running", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        failure = EnvironmentFailure(f"{error.filename or 'the system'}: {error.strerror}", "mend that and try again")
        print(f"aftershock: {failure}", file=sys.stderr)
        return failure.exit_code


if __name__ == "__main__":
    sys.exit(main())
