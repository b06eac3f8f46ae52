"""Finished runs of some nights, with the few tables that comparisons read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from results.runs import published, store
from results.tables.columns import TEXT
from results.tables.schema import SCHEMA_VERSION, TABLES
from tests.unit.results.synthetic import START_NS, write_table

DAY_NS = 86_400 * 10**9
FACTS = {field.name: "any" if field.type == TEXT else 0 for field in TABLES["runs"]}
NOT_MEASURED = dict.fromkeys(("utilization", "sustainable_rate", "tentative_accuracy"))


def write_run(run_id: str, night: float, *, seed: int = 1, facts: dict[str, Any] | None = None, **status: Any) -> None:
    """One run of a night; by default of an experiment "wordcount", done, that measured a service rate."""
    run = store.Run(run_id, store.home() / "runs" / run_id)
    run.tables.mkdir(parents=True)
    row = FACTS | {"run_id": run_id, "experiment": "wordcount", "seed": seed} | NOT_MEASURED | (facts or {})
    write_table(run, "runs", pd.DataFrame([row]))
    known = {"run_id": run_id, "experiment": "wordcount", "state": "done", "started_ns": START_NS + int(night * DAY_NS)}
    same = {"experiment_digest": "d1", "machine": "a machine", "schema_version": SCHEMA_VERSION}
    store.write_json(run.root / "status.json", known | same | {"error": None, "exit_code": 0} | status)


def publish(run_id: str) -> None:
    """Make a run of this installation one that came with the repository."""
    root = published.folder() / "runs" / run_id
    root.parent.mkdir(parents=True, exist_ok=True)
    store.stored(run_id).root.rename(root)
    made = {"command": "aftershock benchmark wordcount", "machine": "a machine", "versions": {"numpy": "2"}}
    files = published.digests(published.contents(root))
    about = {"format": published.FORMAT, **made, "versions_of": "result", "files": files}
    store.write_json(root / published.ABOUT, about)


def write_nights(rates: list[float], *, first: int = 0, prefix: str = "night", **about: Any) -> list[str]:
    """One run a night with each of these service rates; returns the run ids."""
    names = [f"{prefix}-{first + number:03d}" for number in range(len(rates))]
    for number, (name, rate) in enumerate(zip(names, rates, strict=True)):
        write_run(name, first + number, facts={"service_rate": float(rate)}, **about)
    return names


def steady(count: int, rate: float = 6000.0, seed: int = 1) -> list[float]:
    """Service rates that scatter by 2 %."""
    return list(rate * np.exp(0.02 * np.random.default_rng(seed).normal(size=count)))
