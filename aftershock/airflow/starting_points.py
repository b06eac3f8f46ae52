"""The experiments from which a run can start: examples, files in the user's folder, or a file by its path.

Listed whenever Airflow reads the DAG file, so a new file is on offer without a restart.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aftershock.airflow.param_schemas import DRAFT, optional
from experiments import spec
from experiments.documents.gate import YAML, NotPlain, is_plain, read_text
from experiments.documents.parsing import user_path
from experiments.errors import BadInput
from experiments.wording import on_one_line
from results.runs.home import home
from results.runs.step_times import whole_s

EXAMPLE, FILE = "experiment", "experiment_file"  # the params
DEFAULT = "wordcount"
LONGEST_LABEL, MOST_FILES = 170, 200


def own_folder() -> Path:
    """Where users put the experiments that the trigger form should offer."""
    return home() / "experiments"


def offered() -> dict[str, str]:
    """`{value of the param: what the form shows of it}`: the examples by name, then the user's own files by path."""
    own = sorted(path for path in own_folder().glob("*.yaml") if _can_be_offered(path))[:MOST_FILES]
    found = {name: _label(name, spec.EXAMPLES / f"{name}.yaml") for name in spec.available()}
    return found | {str(path): _label(f"{path.name}, own", path) for path in own}


def fields() -> dict[str, dict[str, Any]]:
    """The JSON schemas of the two params."""
    found = offered()
    shown = found | {"null": "none of them: every field as it is by default"}
    choice = {"type": ["string", "null"], "enum": [*found, None], "values_display": shown, "default": DEFAULT}
    return {EXAMPLE: {"$schema": DRAFT, **choice}, FILE: optional({"type": "string", "minLength": 1})}


def document(params: dict[str, Any]) -> dict[str, Any]:
    """The whole experiment that the params name as their start, or else each field's default.

    Raises `BadInput` for a param that is no text, for a file that is no experiment, and if both params name one that
    is not the default.
    """
    example, file = (_text(params, name) for name in (EXAMPLE, FILE))
    if file and example not in (None, DEFAULT):
        raise BadInput(FILE, file, f"left empty, or {EXAMPLE} left at {DEFAULT}: a run starts from one experiment")
    source = str(user_path(file)) if file else example
    experiment = spec.load(source) if source else spec.Experiment()
    return experiment.model_dump(mode="json")


def _can_be_offered(path: Path) -> bool:
    """Whether a form can name a file; a pipe is none of them: while somebody writes to it, its reader waits."""
    return not path.is_fifo() and is_plain(str(path)) and str(path).isprintable()


def _text(params: dict[str, Any], name: str) -> str | None:
    value = params.get(name)
    if not isinstance(value, str | None):
        raise BadInput(name, value, "a text, or left empty")
    return value


def _label(name: str, path: Path) -> str:
    try:
        text = read_text(path, YAML)
        experiment = spec.in_text(text, str(path))
    except (OSError, NotPlain, UnicodeError):
        return on_one_line(f"{name}: cannot be read")
    except BadInput as refusal:
        return _short(f"{name}: refused, {BadInput(refusal.field, refusal.value, refusal.allowed)}")
    times = f"about {max(whole_s(experiment) / 60, 1):.0f} min, {experiment.window_s:g} s of them measured"
    return _short(": ".join(filter(None, [f"{name} ({times})", _first_sentence(text)])))


def _short(label: str) -> str:
    line = on_one_line(label)
    return line if len(line) <= LONGEST_LABEL else f"{line[: LONGEST_LABEL - 2]} …"


def _first_sentence(text: str) -> str:
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# ").strip())
    return " ".join(lines).replace("`", "").partition(". ")[0].rstrip(".")
