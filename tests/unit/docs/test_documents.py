"""The limits that the documentation names are those of the code."""

from pathlib import Path

from experiments.documents import gate
from experiments.documents.field_types import LONGEST_LABEL
from experiments.matrix import MOST_CELLS, MOST_ROWS
from experiments.misfits.faults import MOST_CLOCKS
from models.topology import MOST_TASKS
from results.runs.json_files import MOST_BYTES

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "documents.md").read_text(encoding="utf-8")
MIB = 2**20


def test_every_limit_is_told_as_it_is():
    rows = dict(line.strip("| ").split(" | ", 1) for line in PAGE.splitlines() if line.startswith("| "))
    told = iter(list(rows.values())[1:])
    sizes = [limits.size // MIB for limits in (gate.YAML, gate.JSON, gate.TRACE)]
    values = [f"{limits.values:,}" for limits in (gate.YAML, gate.JSON, gate.TRACE)]
    assert next(told) == "{} MiB of YAML, {} MiB of JSON, {} MiB of a trace".format(*sizes)
    assert next(told) == "{} in YAML, {} in JSON, {} in a trace".format(*values)
    limits = (
        gate.MOST_DEPTH,
        gate.LONGEST_TEXT,
        gate.LONGEST_NUMBER,
        LONGEST_LABEL,
        MOST_BYTES,
        MOST_CLOCKS,
        MOST_ROWS,
        MOST_CELLS,
        MOST_TASKS,
    )
    for limit in limits:
        assert next(told).split(", all")[0].split(", none")[0] == f"{limit:,}"
