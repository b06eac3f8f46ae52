"""The load that other programs put on the machine during a run: the kernel's CPU time minus that of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from aftershock.run.live_run import LiveRun
from experiments.hosts import ClusterDriver
from journal.codec import EventT, Vocabulary
from journal.events.services import HOSTS, MACHINE, HostSample, MachineSample
from journal.reader import events

NS = 1e9


def about_the_machine(live: LiveRun) -> dict[str, Any]:
    """For the run's status: `cores` of the gateway's machine and `others_cores` of them; nothing without samples."""
    plan, here = live.armed_plan, _on_the_machine(live)

    def inside(journal: str, vocabulary: Vocabulary[EventT]) -> list[EventT]:
        looks = events(live.journal_path(journal), vocabulary)
        return [look for look in looks if plan.window_start_ns <= look.at_ns <= plan.window_end_ns]

    machine, samples = inside("machine", MACHINE), inside("hosts", HOSTS)
    others = others_cores(machine, [[each for each in samples if each.host == host] for host in here])
    return {} if others is None else {"cores": machine[-1].cores, "others_cores": round(others, 3)}


def _on_the_machine(live: LiveRun) -> list[str]:
    """The hosts that are on the machine that the sampler looks at, which is the gateway's."""
    apart = live.experiment.cluster.driver in (ClusterDriver.SSH, ClusterDriver.EXTERNAL)
    return [live.handle.gateway.name] if apart else list(live.handle.hosts)


def others_cores(machine: Sequence[MachineSample], hosts: Iterable[Sequence[HostSample]]) -> float | None:
    """How many cores were kept busy by other programs than these hosts, on average over the samples; None without two.

    The CPU time that a process of a host uses in the second in which it dies is in no sample of that host, so it counts
    as that of other programs. A run with many kills therefore shows a little too much.
    """
    busy = _cores([(look.at_ns, look.busy_s) for look in machine])
    used = (_cores([(sample.at_ns, sample.cpu_s) for sample in samples]) for samples in hosts)
    return None if busy is None else max(0.0, busy - sum(cores or 0.0 for cores in used))


def _cores(looks: Sequence[tuple[int, float]]) -> float | None:
    """How many cores a counter of CPU time [s] says were busy, by its values and when [ns] it had them.

    It falls where processes have ended.
    """
    if len(looks) < 2:
        return None
    gained_s = sum(max(0.0, after_s - before_s) for (_, before_s), (_, after_s) in pairwise(looks))
    return gained_s / (looks[-1][0] - looks[0][0]) * NS
