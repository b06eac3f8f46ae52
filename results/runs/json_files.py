"""Reads JSON documents that may be damaged or hostile, and writes them atomically.

What comes back is finite, of limited depth, and of text that can be written anywhere. `read_document` also checks its
fields, once and for all.
"""

from __future__ import annotations

import json
import math
import os
import threading
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from experiments.documents.plain_files import RefusedFile, TooLarge, read_whole
from results.damage import Damaged

MOST_BYTES = 2**24
DEEPEST = 32  # containers in containers
LARGEST_WHOLE = 2**63

Name = Annotated[str, Field(max_length=1000)]
Words = Annotated[str, Field(max_length=100_000)]
Whole = Annotated[int, Field(ge=0, lt=LARGEST_WHOLE)]  # also a time [ns]: 2**63 is in the year 2262
Real = Annotated[float, Field(ge=-1e18, le=1e18)]
Positive = Annotated[float, Field(gt=0, le=1e18)]


class Document(BaseModel):
    """A JSON object whose named fields are of the types that are stated; others are allowed, and kept."""

    model_config = ConfigDict(strict=True, extra="allow", use_enum_values=True)

    def to_json(self) -> dict[str, Any]:
        """The fields that were given, those that are not stated included."""
        return self.model_dump(exclude_unset=True)


DocumentT = TypeVar("DocumentT", bound=Document)


def read_document(path: Path, kind: type[DocumentT], owner: str) -> DocumentT:
    """Read a document whose fields are checked; raises as `read_json` does."""
    found = read_json(path, owner)
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        raise Damaged(owner, path.name, _first(error)) from None


def read_json(path: Path, owner: str = "", most_bytes: int = MOST_BYTES) -> Any:
    """Read a JSON document; raises `FileNotFoundError` where nothing is, and `Damaged` for what cannot be used.

    An error names the file of `owner`, or the whole path if no owner is given.
    """
    try:
        document = json.loads(read_whole(path, most_bytes).decode("utf-8"))
        _check(document)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path) from None
    except RecursionError:
        raise _damaged(path, owner, "it is nested too deeply") from None
    except TooLarge:
        raise _damaged(path, owner, f"it has more than {most_bytes:,} bytes") from None
    except RefusedFile:
        raise _damaged(path, owner, "it is no regular file") from None
    except OSError as error:
        raise _damaged(path, owner, f"it cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise _damaged(path, owner, str(error)) from None
    return document


def write_json(path: Path, document: Any) -> None:
    """Write a JSON document so that a reader sees the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    text = _written(document)
    try:
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def size_of(document: Any) -> int:
    """How many bytes `write_json` makes of a document; `read_json` takes `MOST_BYTES`."""
    return len(_written(document))  # in ASCII


def _written(document: Any) -> str:
    return json.dumps(document, indent=1) + "\n"


def _check(document: Any) -> None:
    """Raises `ValueError` for depth, numbers and text that no document of ours has."""
    level = [document]
    for _ in range(DEEPEST):
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner += each
                inner += each.values()
            elif isinstance(each, list):
                inner += each
            else:
                _check_value(each)
        level = inner
    if level:
        raise ValueError("it is nested too deeply")


def _check_value(value: Any) -> None:
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= each <= "\udfff" for each in value):
            raise ValueError("it holds half a character (a lone surrogate)")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"it holds {value}, which is no number")
    elif isinstance(value, int) and not -LARGEST_WHOLE <= value < LARGEST_WHOLE:
        raise ValueError("it holds a whole number that is too large")


def _damaged(path: Path, owner: str, why: str) -> Damaged:
    return Damaged(owner, path.name if owner else str(path), why)


def _first(error: ValidationError) -> str:
    """The first thing that does not fit, such as "started_ns: Input should be a valid integer"."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]
