"""How often the check of utilization notices an error, and how often it raises a false alarm.

`.venv/bin/python -m benchmarks.regressions.check_power [--runs 200] [--faults 6 20 60]` simulates runs of a query in
micro-batches, one batch after another, with recoveries and checkpoints that scatter as measured ones do. Each run is
predicted and judged as a real one is, by the product's own checks of utilization. Then an error is planted in its
tables or in a formula, and it is judged again. Prints the share of the runs in which a verdict was fail, of those in
which the utilization could be judged.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TypeAlias

import numpy as np
import pandas as pd

from benchmarks.arguments import at_least_one
from benchmarks.one_line_errors import one_line_errors
from benchmarks.sigterm import end_by_sigterm
from tests.unit.results.simulated_runs import EXPERIMENT, FORMULAS, TABLES_WITH, Machine, fails

SOUND = "none (false alarms)"
Verdicts: TypeAlias = dict[str, bool | None]  # None: with the planted error, it is not known


@one_line_errors()
def main() -> None:
    """Print in which share of the simulated runs each error was noticed."""
    given = _arguments()
    end_by_sigterm()  # so that the processes that simulate end
    found = dict[int, list[Verdicts]]()
    with tempfile.TemporaryDirectory() as home:
        os.environ["AFTERSHOCK_HOME"] = home  # no run is there that a simulated one could be compared with
        with ProcessPoolExecutor() as pool:
            for faults in given.faults:
                found[faults] = list(pool.map(partial(verdicts, faults), range(given.runs)))
    print(table(found).to_string(float_format="{:.1%}".format))


def table(found: Mapping[int, Sequence[Verdicts]]) -> pd.DataFrame:
    """The share of failures by planted error and number of faults, of what `verdicts` found; nan if none was judged."""
    shares = {f"{faults} faults": pd.DataFrame(runs).astype("boolean").mean() for faults, runs in found.items()}
    errors = [SOUND, *TABLES_WITH, *FORMULAS, "unknown"]
    return pd.DataFrame(shares).reindex(errors).rename_axis("planted error", axis="columns")


def verdicts(faults: int, seed: int) -> Verdicts:
    """Of one simulated run: whether it was unknown, or else, by the name of the planted error, whether it failed."""
    run, experiment = Machine(np.random.default_rng([7, faults, seed]), faults).run(), EXPERIMENT
    sound = fails(run, experiment)
    if sound is None:
        return {"unknown": True}
    found: Verdicts = {"unknown": False, SOUND: sound}
    for name, plant in TABLES_WITH.items():
        found[name] = fails(plant(run), experiment)
    for name, planted in FORMULAS.items():
        with planted():
            found[name] = fails(run, experiment)
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=at_least_one, default=200, help="simulated runs for each number of faults")
    parser.add_argument("--faults", type=at_least_one, nargs="+", default=[6, 20, 60])
    return parser.parse_args()


if __name__ == "__main__":
    main()
