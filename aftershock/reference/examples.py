"""The page of the experiments and matrices that come with the project."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

from aftershock.reference.markdown import page, table
from experiments import matrix, spec

TEXT = """`aftershock benchmark NAME` runs an example; in Airflow's trigger form, choose it as the experiment. Copy the
file to write an experiment of your own ([fields](experiment.md)). A run takes two to four minutes more than its
window."""
MATRIX_TEXT = """A matrix has many experiments ([nightly runs](../guides/nightly.md#write-a-matrix)). Trigger the DAG
`nightly` with the param `matrix: NAME`."""
ROOT = Path(__file__).parents[2]


def examples() -> str:
    """The page as Markdown; a row is a file, with the comment on its first lines."""
    head = ("example", "what it is", "driver", "engine", "window [s]")
    matrices = [(_link(path), _comment(path)) for path in sorted(matrix.MATRICES.glob("*.yaml"))]
    parts = (table(head, map(_row, spec.available())), "## Matrices", MATRIX_TEXT)
    return page("Examples", "experiments/examples", TEXT, *parts, table(("matrix", "what it is"), matrices))


def _row(name: str) -> tuple[str, ...]:
    path, found = spec.EXAMPLES / f"{name}.yaml", spec.load(name)
    return _link(path), _comment(path), found.cluster.driver.value, found.engine.name.value, f"{found.window_s:g}"


def _link(path: Path) -> str:
    return f"[{path.stem}](../../{path.relative_to(ROOT).as_posix()})"


def _comment(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return " ".join(line.lstrip("# ") for line in takewhile(lambda line: line.startswith("#"), lines))
