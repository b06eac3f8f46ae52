"""Events as the values of Kafka records: one JSON object each, flat, with the `kind` of the event first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

NOTHING = pa.scalar(b"", pa.binary())
PLACE = "position"  # partition and offset of a record tell it


def values(kinds: dict[str, pa.RecordBatch]) -> list[bytes]:
    """The values of all events in the order of their positions, from the events of each kind.

    Their fields are the columns but for `position`. Texts must not need an escape.
    """
    positions = np.concatenate([batch[PLACE].to_numpy() for batch in kinds.values()])
    found: NDArray[Any] = np.empty(len(positions), object)
    texts = [_objects(kind, batch) for kind, batch in kinds.items()]
    found[positions.argsort().argsort()] = np.concatenate(texts)
    return found.tolist()


def opening(kind: str) -> str:
    """How every value of a kind begins."""
    return f'{{"kind":"{kind}",'


def _objects(kind: str, batch: pa.RecordBatch) -> NDArray[Any]:
    pieces: list[Any] = []
    lead = opening(kind)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name != PLACE:
            quote = '"' if _is_text(column.type) else ""
            pieces += [_bytes(f'{lead}"{name}":{quote}'), _texts(column)]
            lead = f"{quote},"
    closing = lead.removesuffix(",") + "}"
    return pc.binary_join_element_wise(*pieces, _bytes(closing), NOTHING).to_numpy(zero_copy_only=False)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_dictionary(kind) or pa.types.is_string(kind)


def _bytes(text: str) -> pa.Scalar:
    return pa.scalar(text.encode(), pa.binary())


def _texts(column: pa.Array) -> pa.Array:
    texts = column.dictionary_decode() if pa.types.is_dictionary(column.type) else pc.cast(column, pa.string())
    return pc.cast(texts, pa.binary())
