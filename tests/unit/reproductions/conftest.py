"""Great Expectations takes seconds to load, and some reproductions take as long: each is made once for all tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from reproductions.reproduce import Reproduced, reproduce

SMALL = {
    "utilization/fig-05": 20, "utilization/fig-12": 20, "ppa/fig-14a": 2, "ppa/fig-14b": 1, "ppa/fig-14c": 2,
    "ppa/fig-14d": 2, "incremental/fig-16a": 2, "incremental/fig-16b": 2, "incremental/fig-16c": 2,
}  # fmt: skip


@pytest.fixture(scope="session")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Reproduced]:
    """The result of a reproduction at a small size, by its id."""
    return cache(lambda id: reproduce(id, tmp_path_factory.mktemp("out"), SMALL.get(id)))
