"""Every reproduction by its id; the modules behind them are imported when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from reproductions.ids import IDS, MODULE_OF
from reproductions.reproduction import Reproduction


class Catalogue(Mapping[str, Reproduction]):
    """The reproductions, in the order of `IDS`; one that is taken imports its own module, and no other."""

    def __getitem__(self, id: str) -> Reproduction:
        module = import_module(MODULE_OF[id])
        return next(found for found in module.REPRODUCTIONS if found.id == id)

    def __contains__(self, id: object) -> bool:
        return id in MODULE_OF

    def __iter__(self) -> Iterator[str]:
        return iter(IDS)

    def __len__(self) -> int:
        return len(IDS)


CATALOGUE: Mapping[str, Reproduction] = Catalogue()
