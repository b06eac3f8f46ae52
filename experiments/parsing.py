"""Documents into typed values: a model of pydantic, and one line for the first thing that is wrong.

Every document that a user writes (an experiment, a fault spec, a topology) is read and validated here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from experiments.errors import BadInput

UNION_FORM = re.compile(r"constrained-float|function-after\[.*\]")  # pydantic's names of a union's forms, no fields
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Misfit(ValueError):
    """A field that is fine by itself but does not go with the others; the message says what does."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        super().__init__(allowed)
        self.field, self.value = field, value


class Spec(BaseModel):
    """Base of every part of a spec: an unknown field or a wrong type is an error, and specs are values."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


SpecT = TypeVar("SpecT", bound=Spec)


def read_mapping(path: Path, field: str, source: str, alternative: str = "") -> dict[str, Any]:
    """Read a YAML mapping (an empty file is an empty one); raises `BadInput` about `field` and its `source`."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(field, source, f"a readable YAML file ({error.strerror}){alternative}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput(field, source, f"valid YAML ({' '.join(str(error).split())})") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise BadInput(field, source, "a YAML mapping of fields")
    return document


def read_json(path: Path, field: str) -> dict[str, Any]:
    """Read a JSON object; raises `BadInput` about `field`. NaN and Infinity are read, and refused by the fields."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(field, str(path), f"a readable JSON file ({error.strerror})") from None
    except ValueError as error:
        raise BadInput(field, str(path), f"valid JSON ({error})") from None
    if not isinstance(document, dict):
        raise BadInput(field, str(path), "a JSON object of fields")
    return document


def parse(model: type[SpecT], document: dict[str, Any], whole: str) -> SpecT:
    """Validate a document as `model`; raises the first problem as `BadInput`, about `whole` if no field is to blame."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = _telling(error)
        if isinstance(misfit := first.get("ctx", {}).get("error"), Misfit):
            raise BadInput(misfit.field, misfit.value, str(misfit)) from None
        field = ".".join(str(part) for part in first["loc"] if not UNION_FORM.fullmatch(str(part))) or whole
        raise BadInput(field, first["input"], _allowed(first)) from None


def _telling(error: ValidationError) -> dict[str, Any]:
    """The first problem, but not that a mapping is no number where it is the other form of the field that was meant."""
    problems = error.errors(include_url=False)
    meant = [p for p in problems if not (p["type"] == "float_type" and isinstance(p["input"], dict))]
    return (meant or problems)[0]


def _allowed(problem: dict[str, Any]) -> str:
    if problem["type"] == "extra_forbidden":
        return "no such field; docs/ and the examples show the known ones"
    return problem["msg"].removeprefix("Value error, ")
