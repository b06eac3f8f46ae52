"""Parses documents into pydantic models, and reports the first error in one line.

Every document that a user writes (an experiment, a fault spec, a topology) is read and validated here.
"""

from __future__ import annotations

import csv
import io
import itertools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails

from experiments.documents import gate, plain_json, plain_yaml
from experiments.documents.field_types import number_of
from experiments.errors import LEFT_OUT, BadInput, in_file
from experiments.wording import exact, instead_of_fraction

NO_FIELD = re.compile(r"<.*>|\[key\]")  # the tags of a union's forms, and what pydantic says of a bad key
DEFAULT = " (the field is not set: this is its default)"
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Misfit(ValueError):
    """A field that is fine by itself but does not go with the others; the message says what does.

    `field` is its path from the model that raises it; "" stands for the very field whose validator does.
    """

    def __init__(self, field: str, value: object, allowed: str) -> None:
        super().__init__(allowed)
        self.field, self.value = field, value


class Spec(BaseModel):
    """Base of every part of a spec: an unknown field, a wrong type or no finite number is wrong; specs are values."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _truth_is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuses true and false where a number is meant, of which pydantic would make 1 and 0."""
        if wanted := number_of(cls, str(info.field_name)):
            for index, item in enumerate(value) if isinstance(value, list | tuple) else (("", value),):
                if isinstance(item, bool):
                    raise Misfit(str(index), item, wanted)
        return value


SpecT = TypeVar("SpecT", bound=Spec)


def user_path(text: str) -> Path:
    """The path that a user has written, `~` and `~name` expanded; the name of an unknown user stays as it is."""
    return Path(os.path.expanduser(text))


def read_mapping(
    path: Path, field: str, source: str, alternative: str = "", *, may_be_empty: bool = False
) -> dict[str, Any]:
    """Read a YAML mapping; raises `BadInput` about `field` and its `source`.

    A file that is empty, or has comments only, may be left unfinished: only if it `may_be_empty` is it a mapping
    without fields.
    """
    with _readable(field, source, "YAML", alternative):
        text = gate.read_text(path, gate.YAML)
    return parse_mapping(text, field, source, may_be_empty=may_be_empty)


def parse_mapping(text: str, field: str, source: str, *, may_be_empty: bool = False) -> dict[str, Any]:
    """The YAML mapping in the text of a file, as `read_mapping` reads it."""
    with _readable(field, source, "YAML"), in_file(source):
        document = plain_yaml.load(text)
        gate.require_plain(document, field)
    if document is None and may_be_empty:
        return {}
    if document is None:
        raise BadInput(field, source, "a YAML mapping of fields; {} is one without fields")
    if not isinstance(document, dict):
        raise BadInput(field, source, "a YAML mapping of fields")
    return document


def parse_value(text: str, field: str, source: str) -> Any:
    """The YAML value in a text that did not come from a file; raises `BadInput` about `field` and its `source`."""
    with _readable(field, source, "YAML"):
        gate.require_text(text)
        return plain_yaml.load(text)


def read_json(path: Path, field: str, limits: gate.Limits = gate.JSON) -> dict[str, Any]:
    """Read a JSON object; raises `BadInput` about `field`. NaN and Infinity are read, and refused by the fields."""
    with _readable(field, str(path), "JSON"), in_file(str(path)):
        document = plain_json.load(gate.read_text(path, limits), limits)
        gate.require_plain(document, field)
    if not isinstance(document, dict):
        raise BadInput(field, str(path), "a JSON object of fields")
    return document


def read_csv(path: Path, field: str, most_rows: int) -> tuple[list[str], list[dict[str | None, Any]]]:
    """The columns of a CSV file and its rows, up to one more than `most_rows`; raises `BadInput` about `field`."""
    with _readable(field, str(path), "CSV"):
        reader = csv.DictReader(io.StringIO(gate.read_text(path, gate.TRACE), newline=""), strict=True)
        names = list(reader.fieldnames or ())
        return names, list(itertools.islice(reader, most_rows + 1))


@contextmanager
def _readable(field: str, source: str, form: str, alternative: str = "") -> Iterator[None]:
    """Within, what keeps a file from being read is told as `BadInput` about the field that names it."""
    try:
        yield
    except OSError as error:
        raise BadInput(field, source, f"a readable {form} file ({error.strerror}){alternative}") from None
    except gate.NotPlain as problem:
        raise BadInput(field, source, str(problem)) from None
    except yaml.YAMLError as error:
        raise BadInput(field, source, f"valid YAML ({plain_yaml.complaint(error)})") from None
    except (ValueError, csv.Error) as error:
        raise BadInput(field, source, f"valid {form} ({error})") from None


def parse(model: type[SpecT], document: dict[str, Any], whole: str) -> SpecT:
    """Validate a document as `model`; raises the first problem as `BadInput`, about `whole` if no field is to blame."""
    gate.require_plain(document, whole)
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = _telling(error)
        path = [str(part) for part in first["loc"] if not NO_FIELD.fullmatch(str(part))]
        if isinstance(misfit := first.get("ctx", {}).get("error"), Misfit):
            field = ".".join(filter(None, [*path, misfit.field]))
            is_default = misfit.value is not LEFT_OUT and not _is_set(document, field)
            raise BadInput(field, misfit.value, f"{misfit}{DEFAULT if is_default else ''}") from None
        field = ".".join(path) or whole
        value = LEFT_OUT if first["type"] == "missing" else first["input"]
        raise BadInput(field, value, _allowed(first) + _known(model, first)) from None


def _is_set(document: Any, path: str) -> bool:
    """Whether a document has a field, or a value in the place of what is above it. Names may have dots in them."""
    if not path or not isinstance(document, dict | list | tuple):
        return True
    items = document.items() if isinstance(document, dict) else enumerate(document)
    below = [(value, path.removeprefix(str(name))) for name, value in items if path.startswith(str(name))]
    return any(not rest or (rest[0] == "." and _is_set(value, rest[1:])) for value, rest in below)


def _known(model: type[Spec], problem: ErrorDetails) -> str:
    """For an unknown field, lists the known fields of that object. Empty if the object may have several forms."""
    if problem["type"] != "extra_forbidden":
        return ""
    forms = [model]
    for part in problem["loc"][:-1]:
        if isinstance(part, str) and len(forms) == 1 and part in forms[0].model_fields:
            forms = list(_specs_in(forms[0].model_fields[part].annotation))
        elif isinstance(part, str):
            forms = [form for form in forms if part.strip("<>") in _tags(form)]
    return f"; known are {', '.join(forms[0].model_fields)}" if len(forms) == 1 else ""


def _specs_in(annotation: Any) -> Iterator[type[Spec]]:
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        yield annotation
    for part in get_args(annotation):
        yield from _specs_in(part)


def _tags(form: type[Spec]) -> set[str]:
    """What pydantic may call this form of a union: its class, or the value that tells it from the others."""
    name = form.model_fields.get("name")
    return {form.__name__, *map(str, get_args(name.annotation) if name else ())}


def _telling(error: ValidationError) -> ErrorDetails:
    """The first problem, but not that a mapping is no number where it is the other form of the field that was meant.

    If a field is missing, an unknown field beside it is told first: it may be the missing one, misspelt.
    """
    problems = error.errors(include_url=False)
    meant = [p for p in problems if not (p["type"] == "float_type" and isinstance(p["input"], dict))]
    first = (meant or problems)[0]
    unknown = [p for p in problems if p["type"] == "extra_forbidden" and p["loc"][:-1] == first["loc"][:-1]]
    return unknown[0] if unknown and first["type"] == "missing" else first


ALLOWED = {  # in a user's words, for the problems that pydantic tells in its own
    "missing": "a value: the field is required",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "a number of {ge} or more",
    "less_than": "a number below {lt}",
    "less_than_equal": "a number of {le} or less",
    "finite_number": "a finite number",
    "float_type": "a number",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number of fewer digits",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text",
    "path_type": "a path, which is a text",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping of fields",
    "model_type": "a mapping of fields",
    "union_tag_not_found": "a mapping of fields",
    "enum": "{expected}",
    "too_short": "{min_length} or more",
    "too_long": "at most {max_length}",
    "string_too_short": "a text that is not empty",
    "invalid_key": "a text as the name of a field",
    "extra_forbidden": "no such field",
}


def _allowed(problem: ErrorDetails) -> str:
    if problem["type"] == "string_type" and isinstance(problem["input"], int | float):  # true and false, too
        return "a text: put quotes around it"
    if problem["type"] == "float_parsing":
        return f"a number{instead_of_fraction(str(problem['input']))}"
    if problem["type"] in ALLOWED:
        context = problem.get("ctx", {}).items()
        bounds = {name: exact(bound) if isinstance(bound, int | float) else bound for name, bound in context}
        return ALLOWED[problem["type"]].format(**bounds)
    return problem["msg"].removeprefix("Value error, ")
