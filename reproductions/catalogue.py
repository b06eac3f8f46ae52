"""Every reproduction by its id."""

from __future__ import annotations

from reproductions import checkmate, incremental, ppa, utilization, utilization_gains, utilization_simulated
from reproductions.reproduction import Reproduction

PARTS = (utilization, utilization_simulated, utilization_gains, checkmate, ppa, incremental)
CATALOGUE: dict[str, Reproduction] = {found.id: found for part in PARTS for found in part.REPRODUCTIONS}
