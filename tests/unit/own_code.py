"""The project's own code as syntax trees; each module is parsed once for all tests of a process."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (
    *("aftershock", "chaos", "dags", "experiments", "infra", "journal", "models", "plugins", "reproductions"),
    *("results", "spark_jobs", "testbed", "workloads"),
)


@cache
def trees():
    """The tree of each module by its path in the checkout."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {path.relative_to(ROOT): ast.parse(path.read_bytes()) for path in paths}


def modules():
    """The same by dotted name."""
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__"): tree for path, tree in trees().items()}
