"""How busy others kept the machine while a run was measured: what its kernel counts, less what the cluster used."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from aftershock.run.live_run import LiveRun
from experiments.spec import ClusterDriver
from journal.reader import entries

NS = 1e9
Entries = list[dict[str, Any]]


def about_the_machine(live: LiveRun) -> dict[str, Any]:
    """For the run's status: `cores` of the gateway's machine and `others_cores` of them; nothing if nobody looked."""
    plan, here = live.plan, _on_the_machine(live)

    def inside(journal: str, event: str) -> Entries:
        looks = (entry for entry in entries(live.journal_path(journal)) if entry["event"] == event)
        return [look for look in looks if plan["window_start_ns"] <= look["at_ns"] <= plan["window_end_ns"]]

    machine, samples = inside("machine", "machine"), inside("hosts", "sample")
    others = others_cores(machine, [[e for e in samples if e["host"] == host] for host in here])
    return {} if others is None else {"cores": machine[-1]["cores"], "others_cores": round(others, 3)}


def _on_the_machine(live: LiveRun) -> list[str]:
    """The hosts that are on the machine that the sampler looks at, which is the gateway's."""
    apart = live.experiment.cluster.driver is ClusterDriver.SSH
    return [live.handle.gateway.name] if apart else list(live.handle.hosts)


def others_cores(machine: Entries, hosts: list[Entries]) -> float | None:
    """How many cores others than these hosts kept busy on average, by the looks at them; None without two.

    What a process has used in the second in which it dies counts as others', since nobody saw it: a run of many kills
    shows a little too much.
    """
    busy = _cores(machine, "busy_s")
    return None if busy is None else max(0.0, busy - sum(_cores(samples, "cpu_s") or 0.0 for samples in hosts))


def _cores(looks: Entries, counter: str) -> float | None:
    """How many cores a counter of CPU time [s] says were busy; it falls where processes have ended."""
    if len(looks) < 2:
        return None
    gained_s = sum(max(0.0, after[counter] - before[counter]) for before, after in pairwise(looks))
    return float(gained_s / (looks[-1]["at_ns"] - looks[0]["at_ns"]) * NS)
