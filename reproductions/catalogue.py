"""Every reproduction by its id."""

from __future__ import annotations

from reproductions import checkmate, utilization, utilization_gains
from reproductions.reproduction import Reproduction

CATALOGUE: dict[str, Reproduction] = {
    reproduction.id: reproduction
    for part in (utilization, utilization_gains, checkmate)
    for reproduction in part.REPRODUCTIONS
}
