"""The command line itself, called in this process: its exit codes, its one line of error, its one document."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random

from aftershock.cli.program import main
from experiments import spec
from experiments.errors import BadInput
from experiments.faults import FaultSpec
from models.topology import Topology
from tests.fuzz.examples import Kind, kinds
from tests.fuzz.fuzz_documents import FEW, LONGEST_LINE
from tests.fuzz.mutation import mutated
from tests.fuzz.session import Fuzzer, Session
from tests.fuzz.temporary_home import temporary_home

MOST_TASKS = 12  # of a topology that is planned here: plans take long by nature
NUMBERS = (
    "0",
    "1",
    "-1",
    "0.5",
    "20",
    "nan",
    "inf",
    "1e-320",
    "1e308",
    "9" * 5000,
    "²",
    "",
    "x",
    "1_0",
    "0x1",
    "\x1b[1m",
)
NAMES = ("all", "", "join.0", "join.0,top.0", "join.9", "a\nb", "\x1b[31m", "²", "\udcff", "," * 50, "a" * 20_000)
RUN_IDS = ("no-such-run", "../x", "a\nb", "\x1b[31m", "\udcff", "", "a" * 5000, "--", "-x", "--json")
FIRST = (["benchmark", "nowhere"], ["plan", "faults", "nowhere", "--seed", "1"], ["results", "compare", "x"])
OVERRIDES = ("faults.processes.²=1", "a\x1b[31m=1", "name=2026-02-30", "seed=&a [*a]", "\udcff=1", "nonsense", "x.y=1")
SYSTEM = ("failure-rate", "checkpoint-cost", "recovery-time", "interval", "hop-delay", "depth")


def called(words: list[str]) -> str:
    """Call the command line; raises unless it did as its contract says; returns how it ended."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    told, shown = err.getvalue(), out.getvalue()
    if code == 2:
        fine = not shown and told.count("\n") == 1 and told[:-1].isprintable() and len(told) < LONGEST_LINE
    else:
        fine = code == 0 and not told and all(line.isprintable() for line in shown.split("\n"))
    if not fine:
        raise AssertionError(f"exit code {code}, stdout {shown[:300]!r}, stderr {told[:2000]!r}")
    if code == 0 and "--json" in words:
        json.loads(shown)
    return f"exit code {code}"


def feed(session: Session) -> None:
    with temporary_home() as folder:
        of_kind = kinds(folder)
        for words in FIRST:
            called(words)  # a command's modules are imported by its first call, which is none of an input's time
        for random in session.draws():
            words = random.choice(CALLS)(random, of_kind, folder)
            if random.random() < 0.3:
                words.append("--json")
            with session.feeding((words, _content(words))):
                session.outcomes[called(words)] += 1


def _content(words: list[str]) -> bytes:
    return b"".join(Path(word).read_bytes() for word in words if word.endswith((".yaml", ".json")) and word[0] == "/")


def _written(random: Random, kind: Kind, folder: Path, is_light: Callable[[object], bool]) -> str:
    """The path of a changed document that is refused, or is light work; an example's after many others."""
    path = folder / kind.file
    for _ in range(20):
        path.write_bytes(mutated(random, kind.examples))
        try:
            if is_light(kind.read(path)):
                return str(path)
        except BadInput:
            return str(path)
    path.write_bytes(kind.examples[0])
    return str(path)


def _few_faults(found: object) -> bool:
    """Few faults, and a plan at all: without a duration the call is refused."""
    return isinstance(found, FaultSpec) and (found.duration is None or found.failure_rate * found.duration < FEW)


def _few_tasks(found: object) -> bool:
    return isinstance(found, Topology) and len(found.tasks) <= MOST_TASKS


def _plan_faults(random: Random, of_kind: dict[str, Kind], folder: Path) -> list[str]:
    path = _written(random, of_kind["fault spec"], folder, _few_faults)
    return ["plan", "faults", path, "--seed", random.choice(("1", "1", "1", *NUMBERS))]


def _fidelity(random: Random, of_kind: dict[str, Kind], folder: Path) -> list[str]:
    path = _written(random, of_kind["topology"], folder, _few_tasks)
    return ["predict", "fidelity", path, "--failed", random.choice(NAMES)]


def _replication(random: Random, of_kind: dict[str, Kind], folder: Path) -> list[str]:
    path = _written(random, of_kind["topology"], folder, _few_tasks)
    algorithm = random.choice(("exact", "dp", "structure-aware", "greedy"))
    return ["plan", "replication", path, "--budget", random.choice(("2", *NUMBERS)), "--algorithm", algorithm]


def _recovery(random: Random, of_kind: dict[str, Kind], folder: Path) -> list[str]:
    path = _written(random, of_kind["topology"], folder, _few_tasks)
    algorithm = random.choice(("exact", "dp", "best-density", "operator-centric"))
    options = ["--failed", random.choice(NAMES), "--capacity", random.choice(("2", *NUMBERS)), "--algorithm", algorithm]
    return ["plan", "recovery", path, *options]


def _benchmark(random: Random, of_kind: dict[str, Kind], folder: Path) -> list[str]:
    """Only what is refused: anything else would be run."""
    path = _written(random, of_kind["experiment"], folder, lambda _: False)
    try:
        spec.load(path)
    except BadInput:
        return ["benchmark", path]
    return ["benchmark", path, "--set", random.choice(OVERRIDES)]


def _utilization(random: Random, _: dict[str, Kind], __: Path) -> list[str]:
    return ["predict", "utilization", *(f"--{name}={random.choice(('1', '5', '20', *NUMBERS))}" for name in SYSTEM)]


def _results(random: Random, _: dict[str, Kind], __: Path) -> list[str]:
    return ["results", *random.choices((*RUN_IDS, "show", "compare", "export", "--out"), k=random.randint(1, 3))]


CALLS = (_plan_faults, _plan_faults, _fidelity, _replication, _recovery, _benchmark, _utilization, _results)
FUZZERS = [Fuzzer("command line", feed, weight=0.3)]
