"""What a benchmark prints for `--json`, also if it does not come to its end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def json_at_the_end(is_asked: bool, document: Callable[[], dict[str, Any]]) -> Iterator[None]:
    """If it is asked for, prints a document when the block ends, so that no run before one that fails is lost.

    Its field `complete` says whether the block has come to its end.
    """
    complete = False
    try:
        yield
        complete = True
    finally:
        if is_asked:
            print(json.dumps({"complete": complete} | document(), allow_nan=False))
