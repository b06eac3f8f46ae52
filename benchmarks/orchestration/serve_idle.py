"""How long `aftershock serve` takes until it can be used, and what an idle Airflow costs.

    .venv/bin/python -m benchmarks.orchestration.serve_idle [SECONDS]

Serves twice from a home of its own: with a new database, and again with that database. When the second has been up for
a minute, it is watched for SECONDS (60 by default) while it is idle.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from aftershock.airflow.serve import COMPONENTS
from benchmarks.arguments import above_zero
from benchmarks.one_line_errors import one_line_errors
from benchmarks.sigterm import end_by_sigterm
from experiments.errors import EnvironmentFailure

PROGRAM = Path(sys.executable).with_name("aftershock")
PORT, SETTLING_S, WATCHED_S, ENDING_LIMIT_S = 8099, 60.0, 60.0, 60.0


class Start(NamedTuple):
    """A start of `serve`: until it said that it can be used [s], and the CPU time that it took until then [s]."""

    ready_s: float
    cpu_s: float


@one_line_errors()
def main() -> None:
    """Print a line for each start, and one for each component that was watched."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", nargs="?", type=above_zero, default=WATCHED_S, help="that it is watched (60)")
    watched_s = parser.parse_args().seconds
    end_by_sigterm()  # so that the served Airflow ends
    with tempfile.TemporaryDirectory() as home:
        with served(home) as (_, start):
            print(f"new database: ready after {start.ready_s:.1f} s, {start.cpu_s:.1f} s of CPU time", flush=True)
        with served(home) as (process, start):
            print(f"database there: ready after {start.ready_s:.1f} s, {start.cpu_s:.1f} s of CPU time", flush=True)
            time.sleep(SETTLING_S)
            before, began = cpu_by_component(process), time.monotonic()
            time.sleep(watched_s)
            after, took_s = cpu_by_component(process), time.monotonic() - began
    for name in after:
        print(f"{name}: {(after[name] - before.get(name, 0.0)) / took_s:.2%} of a core")
    print(f"all: {(sum(after.values()) - sum(before.values())) / took_s:.2%} of a core in {took_s:.0f} s")


@contextmanager
def served(home: str) -> Iterator[tuple[psutil.Process, Start]]:
    """`aftershock serve` with that home, from when it can be used on."""
    began = time.monotonic()
    variables = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")}
    command = [str(PROGRAM), "serve", "--port", str(PORT)]
    child = subprocess.Popen(command, env=variables | {"AFTERSHOCK_HOME": home}, stdout=subprocess.PIPE, text=True)
    try:
        line = child.stdout.readline() if child.stdout else ""
        if not line.startswith("Airflow: http"):
            sys.exit("Airflow did not come up")
        process = psutil.Process(child.pid)
        yield process, Start(time.monotonic() - began, sum(cpu_by_component(process).values()))
    finally:
        _end(child)


def _end(child: subprocess.Popen[str]) -> None:
    """By SIGTERM; raises `EnvironmentFailure` if it has to be killed, which ends Airflow's components, too."""
    child.terminate()
    try:
        child.wait(ENDING_LIMIT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        cause = f"`aftershock serve` had not ended {ENDING_LIMIT_S:g} s after SIGTERM, and was killed"
        raise EnvironmentFailure(cause, "see its log") from None


def cpu_by_component(serve: psutil.Process) -> dict[str, float]:
    """CPU time [s] of Airflow's components with their children, those that have ended included, and of `serve`."""
    used: dict[str, float] = defaultdict(float, {"serve": _cpu_s(serve)})
    for leader in serve.children():
        with suppress(psutil.NoSuchProcess):  # it has ended meanwhile, so its time is in that of `serve`
            title = " ".join(leader.cmdline()).replace("_", "-")  # the API server gives itself one of its own
            name = next((name for name in COMPONENTS if name in title), "migration")
            used[name] += _cpu_s(leader) + sum(map(_cpu_s, leader.children(recursive=True)))
    return used


def _cpu_s(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


if __name__ == "__main__":
    main()
