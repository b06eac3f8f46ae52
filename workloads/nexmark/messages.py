"""Events as the values of Kafka records: one JSON object each, flat, with `kind` person, auction or bid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from experiments.workloads import NexmarkSpec
from workloads.nexmark.stream import Events, Stream, events
from workloads.schedule import Schedule

NOTHING = pa.scalar(b"", pa.binary())


def records(spec: NexmarkSpec, schedule: Schedule) -> Callable[[int, int], list[bytes]]:
    """The workload's input: values by position, due (and dated) by the schedule."""
    hot = (spec.hot_auctions, spec.hot_bidders, spec.hot_sellers)
    stream = Stream(spec.stream_seed, schedule, *hot, open_at_most_ms=spec.window_ms)
    return lambda start, stop: messages(events(stream, start, stop))


def messages(made: Events) -> list[bytes]:
    """The values of all events in the order of their positions.

    Their fields are the columns of `Events` but `position`, which partition and offset of the record tell.
    """
    kinds = {"person": made.persons, "auction": made.auctions, "bid": made.bids}
    positions = np.concatenate([batch["position"].to_numpy() for batch in kinds.values()])
    values: NDArray[Any] = np.empty(len(positions), object)
    texts = [_objects(kind, batch) for kind, batch in kinds.items()]
    values[positions.argsort().argsort()] = np.concatenate(texts)
    return values.tolist()


def opening(kind: str) -> str:
    """How every message of a kind begins."""
    return f'{{"kind":"{kind}",'


def _objects(kind: str, batch: pa.RecordBatch) -> NDArray[Any]:
    """The rows of a batch as JSON objects. No text of `workloads.nexmark.words` needs an escape."""
    pieces: list[Any] = []
    lead = opening(kind)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name != "position":
            quote = '"' if pa.types.is_dictionary(column.type) else ""
            pieces += [_bytes(f'{lead}"{name}":{quote}'), _texts(column)]
            lead = f"{quote},"
    closing = lead.removesuffix(",") + "}"
    return pc.binary_join_element_wise(*pieces, _bytes(closing), NOTHING).to_numpy(zero_copy_only=False)


def _bytes(text: str) -> pa.Scalar:
    return pa.scalar(text.encode(), pa.binary())


def _texts(column: pa.Array) -> pa.Array:
    texts = column.dictionary_decode() if pa.types.is_dictionary(column.type) else pc.cast(column, pa.string())
    return pc.cast(texts, pa.binary())
