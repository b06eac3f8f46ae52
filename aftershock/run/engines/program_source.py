"""Refuses an own job whose Python files have syntax errors; they are compiled, and never executed."""

from __future__ import annotations

import platform
import warnings
from contextlib import suppress
from pathlib import Path

from experiments.errors import BadInput
from experiments.workloads.catalogue import OwnJobSpec

PYTHON = f"Python {platform.python_version()}"  # on every host, the same one
SOURCE = ".py"  # a program may also be compiled or packed already


def check(job: OwnJobSpec) -> None:
    """Raise `BadInput` for a program or an oracle that is no valid Python."""
    for field, path in (("program", job.program), ("oracle", job.oracle)):
        if path and path.endswith(SOURCE):
            _compile(f"workload.{field}", path)


def _compile(field: str, path: str) -> None:
    try:
        with (
            warnings.catch_warnings(),
            suppress(RecursionError, MemoryError),
        ):  # what is nested too deeply is not judged
            warnings.simplefilter("ignore")
            compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
    except SyntaxError as error:
        where = f"line {error.lineno}: " if error.lineno else ""
        raise BadInput(field, path, f"a file that is valid {PYTHON} ({where}{error.msg})") from None
    except ValueError as error:
        raise BadInput(field, path, f"a file that is valid {PYTHON} ({error})") from None
    except OSError as error:
        raise BadInput(field, path, f"a readable Python file ({error.strerror})") from None
