"""The class of the machine that a run ran on, and the digest of its experiment: what makes runs comparable."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.spec import Experiment

NOT_WHAT_IS_RUN = {"seed", "tolerances"}
NEW_FIELDS = {"staggered"}  # of the engine, younger than published runs, whose digests must stay
DIGEST_DIGITS = 16
GIB = 2**30


def machine_class() -> str:
    """The class of this machine in one line, such as "Intel(R) Xeon(R) Processor, 2 cores, 24 GiB".

    Machines of one class are taken to be equally fast. Memory is rounded, since kernels keep different amounts for
    themselves. With driver `ssh` it is the machine that drives the run; the others are named in the experiment.
    """
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{_processor()}, {len(os.sched_getaffinity(0))} cores, {_rounded(memory_bytes / GIB):g} GiB"


def _processor() -> str:
    """The model of the processor, or its architecture where the kernel names no model."""
    listing = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    model = re.search(r"^model name\s*:\s*(.+)$", listing, re.MULTILINE)
    return " ".join(model[1].split()) if model else platform.machine()


def _rounded(gib: float) -> float:
    """To the nearest of 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, ...: steps of a quarter of the power of two below."""
    step = 1 / 4
    while step * 8 <= gib:
        step *= 2
    return round(gib / step) * step


def experiment_digest(experiment: Experiment) -> str:
    """A short text that two experiments share if they run the same: seed and tolerances do not matter.

    It is of the experiment with everything filled in that it leaves open, and without what its load mode does not look
    at: where a later version has another default, what it runs is another thing. A field that a later version adds
    changes every digest, unless `NEW_FIELDS` has it and it is false or left out.
    """
    load = experiment.load.model_copy(update={"probe_s": experiment.probe_s})
    decided = {"faults": experiment.fault_spec, "engine": experiment.engine.filled_in, "load": load}
    stated = experiment.model_copy(update=decided).model_dump(mode="json", exclude=NOT_WHAT_IS_RUN)
    stated["load"] = {name: value for name, value in stated["load"].items() if name in load.used}
    engine = stated["engine"]
    stated["engine"] = {name: value for name, value in engine.items() if name not in NEW_FIELDS or value}
    return hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()[:DIGEST_DIGITS]
