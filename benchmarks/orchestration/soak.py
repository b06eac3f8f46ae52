"""Thousands of faults of every kind under a served Airflow, in pieces, and what each piece leaves on the machine.

    .venv/bin/python -m benchmarks.orchestration.soak --ledger soak.jsonl [--drivers local netns docker ssh external]
    [--faults 10000] [--hours 24]

serves Airflow from a home of its own and triggers the DAG `benchmark`, run after run, until `--faults` faults were
injected or `--hours` have passed. A piece is a run of a soak experiment under the next seed, on the driver with the
fewest pieces so far. Before and after each piece, it notes the processes, files and interfaces of the machine, and the
resources that the served Airflow holds.

The ledger gets one line for each piece when that is over, so the command can be ended at any moment, and goes on from
there when it is started again. A run in which something was wrong is copied beside the ledger, since the home is
removed in the end. Prints the pieces by driver. Ends with 1 if any piece in the ledger went wrong, if what Airflow
holds grows, or if the pieces are too few to tell. Nothing else should start clusters on the machine meanwhile: they
would count as left over, unless the soak is kept apart (`apart.sh`).

For driver docker a daemon is started, as root, if there is none. The machines of driver ssh are network namespaces with
an sshd; this needs root. They are made before the first piece and removed after the last. The cluster of driver
external is Spark's own master and workers with a broker, on this machine, and its commands are those of
docs/examples/external/standalone. It is there only during the pieces of that driver, so that it loads no others.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import yaml

from aftershock.reference import markdown
from aftershock.watch.clean import clean
from benchmarks.arguments import above_zero, at_least_one
from benchmarks.json_ledger import JsonLedger
from benchmarks.one_line_errors import one_line_errors
from benchmarks.orchestration import belongings
from benchmarks.orchestration.serve_idle import PORT, served
from benchmarks.sigterm import end_by_sigterm
from experiments import spec
from experiments.errors import AftershockError
from experiments.fault_kinds import FaultKind
from experiments.wording import counted
from infra import leftovers
from infra.drivers import driver_of
from results.runs import store
from results.tables.schema import FaultOutcome
from results.verdict import Verdict
from tests.docker_daemon import docker_daemon
from tests.e2e.airflow_server import ENDED, Server
from tests.e2e.standalone_cluster import standalone_cluster
from tests.integration.infra import machines

EXPERIMENTS = {"local": "soak"} | dict.fromkeys(("netns", "docker", "ssh", "external"), "soak-netns")
WINDOW_S, SETTLING_S, POLL_S = 900.0, 20.0, 5.0
# What dies has to start again: an executor takes 8 s of CPU time for that, a query with six of them a minute. On each
# host and service this comes less often than in the examples, and other faults more often: so 10,000 take hours, not a
# day, and two cores are enough. The next fault of a host waits for proofs: that a container is paused takes 1 to 2 s,
# that a killed worker of an existing cluster is back 10 s and more. So drivers docker and external have fewer.
HOSTS, MAX_DOWN = 6, 4
WITHOUT_RESTART, RARER = {FaultKind.PAUSE, FaultKind.SLOW, FaultKind.PARTITION, FaultKind.DISK_FULL}, 1 / 4
OFTENER = {"local": 5, "netns": 5, "docker": 2, "ssh": 5, "external": 2}
MUST_PASS = (
    *("faults.proved", "faults.healed", "faults.as_planned"),
    *("ledger.adds_up", "quality.nothing_lost", "quality.nothing_wrong"),
)
# What a served Airflow may hold more at its end than after its first pieces: by share, and besides.
MOST_GROWTH = 1.2
SLACK = belongings.Usage(processes=2, threads=8, descriptors=32, memory_mb=64.0)
FIFTHS = 5  # as many pieces of one served Airflow are needed to speak of growth


@dataclass(frozen=True)
class Piece:
    """One run.

    serve  names the served Airflow; another start of the command has another
    held   what that held when the run was over
    wrong  what was wrong; empty if nothing was
    """

    driver: str
    seed: int
    serve: str
    kinds: dict[str, int] = field(default_factory=dict)
    held: dict[str, float] = field(default_factory=dict)
    wrong: str = ""

    @property
    def faults(self) -> int:
        """How many faults were injected."""
        return sum(self.kinds.values())


class Ledger(JsonLedger[Piece]):
    """The pieces so far."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, Piece)

    @property
    def faults(self) -> int:
        """How many faults were injected in all."""
        return sum(piece.faults for piece in self.lines)

    def next(self, drivers: Sequence[str]) -> tuple[str, int]:
        """Driver and seed of the next piece. A piece that went wrong is not tried again: the next has another seed."""
        count = Counter(piece.driver for piece in self.lines)
        driver = min(drivers, key=lambda each: count[each])
        return driver, 1 + count[driver]

    def growth(self) -> list[str]:
        """What a served Airflow holds more and more of: last fifth of its pieces against the second.

        One with fewer than five pieces is passed over (`unevaluated`). Another one holds nothing of it, so pieces of
        several are not compared.
        """
        found = []
        for serve, held in self._held.items():
            fifth = len(held) // FIFTHS
            for name, slack in SLACK._asdict().items() if fifth else ():
                then, now = (median(each[name] for each in part) for part in (held[fifth : 2 * fifth], held[-fifth:]))
                if now > MOST_GROWTH * then + slack:
                    found.append(f"{serve}: {name} grew from {then:.0f} to {now:.0f}")
        return found

    def unevaluated(self) -> str:
        """Why nothing is known about growth; empty if one served Airflow had pieces enough."""
        most = max(map(len, self._held.values()), default=0)
        if most >= FIFTHS:
            return ""
        return f"growth not evaluated: {counted(most, 'piece')} of one server, at least {FIFTHS} are needed"

    @property
    def _held(self) -> dict[str, list[dict[str, float]]]:
        """What each served Airflow held after its pieces."""
        found: dict[str, list[dict[str, float]]] = {piece.serve: [] for piece in self.lines}
        for piece in self.lines:
            found[piece.serve] += [piece.held] if piece.held else []
        return found

    def table(self) -> str:
        """As Markdown: faults by driver and kind, and what was wrong."""
        kinds = sorted({kind for piece in self.lines for kind in piece.kinds})
        head, rows = ["driver", "pieces", "faults", *kinds, "wrong"], []
        for driver in dict.fromkeys(piece.driver for piece in self.lines):
            pieces = [piece for piece in self.lines if piece.driver == driver]
            counts = [sum(piece.kinds.get(kind, 0) for piece in pieces) for kind in kinds]
            wrong = sum(bool(piece.wrong) for piece in pieces)
            rows.append([driver, *(f"{each:,}" for each in (len(pieces), sum(counts), *counts, wrong))])
        return markdown.table(head, rows)


def experiment(driver: str, seed: int, window_s: float, inventory: Path | None) -> dict[str, Any]:
    """The soak experiment of a driver with more faults, without those that the driver cannot inject.

    `inventory`: the file that the experiment names (drivers ssh and external).

    Raises as the driver's check if that asks its machines.
    """
    found = spec.load(EXPERIMENTS[driver]).model_dump(mode="json")
    found |= {"name": f"soak-{driver}", "seed": seed, "window_s": window_s}
    named = {"inventory": str(inventory)} if inventory else {}
    found["cluster"] |= {"driver": driver, "workers": HOSTS, **named}
    processes = [each for each in found["faults"]["processes"] if _can_be_injected(found, each)]
    for each in processes:
        each["rate"] *= OFTENER[driver] if each["kind"] in WITHOUT_RESTART else RARER
    found["faults"] |= {"processes": processes, "max_down": MAX_DOWN}
    return found


def _can_be_injected(document: dict[str, Any], process: dict[str, Any]) -> bool:
    one = spec.validate({**document, "faults": {**document["faults"], "processes": [process]}})
    driver = driver_of(one.cluster.driver)
    return all(driver.refusal(one.cluster, each.kind, each.options) is None for each in one.faults.processes)


def judged(run: store.Run) -> tuple[dict[str, int], list[str]]:
    """Injected faults by kind, and what is wrong with the run."""
    faults, verdicts = run.table("faults"), run.table("verdicts").set_index("check")["verdict"]
    wrong = [f"{check} {verdicts.get(check, 'absent')}" for check in MUST_PASS if verdicts.get(check) != Verdict.PASS]
    injected = faults[faults["outcome"] == FaultOutcome.INJECTED]
    if injected.empty:
        wrong.append("no fault was injected")
    return {str(kind): int(count) for kind, count in injected["kind"].value_counts().items()}, wrong


def played(
    driver: str, seed: int, serve: str, home: Path, run: Callable[[str], store.Run], held: Callable[[], Any]
) -> Piece:
    """Run one piece; `run` takes the name of the piece, and `held` tells what the served Airflow holds."""
    before = belongings.on_the_machine(home)
    try:
        kinds, wrong = judged(run(name_of(driver, seed)))
    except (OSError, LookupError, ValueError, AftershockError) as error:
        kinds, wrong = {}, [f"{type(error).__name__}: {error}"]
    time.sleep(SETTLING_S)
    found = belongings.left(before, belongings.on_the_machine(home))
    wrong += [f"{kind} left: {', '.join(names)}" for kind, names in found.items()]
    return Piece(driver, seed, serve, kinds, held()._asdict(), "; ".join(wrong))


def name_of(driver: str, seed: int) -> str:
    """The id of the run of a piece."""
    return f"soak-{driver}-{seed}"


def keep(home: Path, piece: Piece, folder: Path) -> None:
    """Copy the run of a piece into a folder, if there is one; its name there has the served Airflow, too."""
    name = name_of(piece.driver, piece.seed)
    if (found := home / "runs" / name).exists():
        shutil.copytree(found, folder / f"{name}-{piece.serve}")


@one_line_errors()
def main() -> None:
    """Run pieces until there were enough faults, or the time is up, and print the table."""
    given = _arguments()
    end_by_sigterm()  # so that the served Airflow ends
    ledger, end_s = Ledger(given.ledger), time.monotonic() + given.hours * 3600
    with TemporaryDirectory(prefix="aftershock-soak-") as folder:
        home = Path(folder)
        os.environ |= {"AFTERSHOCK_HOME": folder, "TMPDIR": str(home / belongings.TEMPORARY)}
        (home / belongings.TEMPORARY).mkdir()
        daemon = docker_daemon() if "docker" in given.drivers else nullcontext()
        with (
            _machines(home, given.drivers) as machines_there,
            daemon,
            ExitStack() as cluster,  # ends after what is struck there was brought back
            _torn_down(),
            served(folder) as (process, _),
        ):
            server, serve = Server(f"http://127.0.0.1:{PORT}", None), f"{time.time():.0f}"
            server.switch_on("benchmark")
            while ledger.faults < given.faults and time.monotonic() < end_s:
                driver, seed = ledger.next(given.drivers)
                inventory = cluster.enter_context(_inventory(home, driver, machines_there))
                document = experiment(driver, seed, given.window, inventory)
                ledger.add(played(driver, seed, serve, home, _Triggered(server, home, document), _held(process)))
                cluster.close()
                if ledger.lines[-1].wrong:
                    keep(home, ledger.lines[-1], given.ledger.with_suffix(".wrong"))
                print(f"{driver}, seed {seed}: {ledger.lines[-1].faults} faults {ledger.lines[-1].wrong}", flush=True)
    sys.exit(not report(ledger))


def report(ledger: Ledger) -> bool:
    """Print the pieces by driver, and what grew. Whether all pieces were well, and it is known that nothing grew."""
    found = [*ledger.growth(), *filter(None, [ledger.unevaluated()])]
    print(ledger.table(), *found, sep="\n")
    return not found and not any(piece.wrong for piece in ledger.lines)


@contextmanager
def _torn_down() -> Iterator[None]:
    """Afterwards no run is left, also if the command is ended amid one, of which Airflow cannot take care any more."""
    try:
        yield
    finally:
        for run_id in store.all_live():
            clean(run_id)


@contextmanager
def _machines(home: Path, drivers: Sequence[str]) -> Iterator[Path | None]:
    """Yields the inventory of driver ssh, if that has pieces; makes the machines first."""
    if "ssh" not in drivers:
        yield None
        return
    made = machines.make(home / "ssh", HOSTS)
    try:
        yield home / "ssh" / machines.INVENTORY
    finally:
        leftovers.remove(made.label)


@contextmanager
def _inventory(home: Path, driver: str, machines_there: Path | None) -> Iterator[Path | None]:
    """Yields the inventory of a piece, None if its driver needs none; for driver external, starts a cluster first."""
    if driver != "external":
        yield machines_there if driver == "ssh" else None
        return
    workers = [f"w-{number}" for number in range(1, HOSTS + 1)]
    with TemporaryDirectory(prefix="external-", dir=home) as folder, standalone_cluster(Path(folder), workers) as there:
        yield there.description


@dataclass(frozen=True)
class _Triggered:
    """Runs an experiment as a DAG run of the served Airflow."""

    server: Server
    home: Path
    document: dict[str, Any]

    def __call__(self, run_id: str) -> store.Run:
        path = self.home / f"{run_id}.yaml"
        path.write_text(yaml.safe_dump(self.document), encoding="utf-8")
        dag_run = self.server.trigger("benchmark", {"experiment_file": str(path), "run_id": run_id})
        while self.server.call(f"/api/v2/dags/benchmark/dagRuns/{dag_run}")["state"] not in ENDED:
            time.sleep(POLL_S)
        return store.finished(run_id)


def _held(process: psutil.Process) -> Callable[[], belongings.Usage]:
    return lambda: belongings.usage(process)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledger", type=Path, required=True, help="the file that has the pieces so far")
    parser.add_argument("--drivers", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS))
    parser.add_argument(
        "--faults", type=at_least_one, default=10_000, help="injected ones, in all pieces of the ledger"
    )
    parser.add_argument("--hours", type=above_zero, default=24.0, help="no piece begins later")
    parser.add_argument("--window", type=above_zero, default=WINDOW_S, help="of each piece, in seconds")
    return parser.parse_args()


if __name__ == "__main__":
    main()
