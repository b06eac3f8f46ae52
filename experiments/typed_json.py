"""Dataclasses that pass between processes as JSON documents: written as they are, checked where they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

T = TypeVar("T", bound="TypedJson")
_adapters: dict[type, TypeAdapter[Any]] = {}  # making one takes milliseconds


class TypedJson:
    """Base of such a dataclass. Nothing is converted when a document is read, except within specs of experiments."""

    __pydantic_config__: ClassVar = ConfigDict(strict=True, extra="forbid")

    def to_json(self) -> dict[str, Any]:
        """The JSON document: dictionaries, lists, texts and numbers."""
        document: dict[str, Any] = _adapter(type(self)).dump_python(self, mode="json")
        return document

    @classmethod
    def from_json(cls: type[T], document: Any) -> T:
        """The object that a JSON document describes.

        Raises `ValueError` for a field that is missing, unknown or of another type. It names the field, not its value,
        which may be secret.
        """
        try:
            found: T = _adapter(cls).validate_json(json.dumps(document))
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            field = ".".join(map(str, first["loc"])) or "the document"
            raise ValueError(f"{field} is not as it should be: {first['msg']}") from None
        return found

    @classmethod
    def read(cls: type[T], path: Path) -> T:
        """The object that a JSON file describes; raises as `from_json` does, and `OSError` without a file."""
        return cls.from_json(json.loads(path.read_text(encoding="utf-8")))


def _adapter(kind: type) -> TypeAdapter[Any]:
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]
