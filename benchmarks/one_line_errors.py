"""How a benchmark ends if it fails: with one line, not with a traceback."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from experiments.errors import AftershockError


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Prints an `AftershockError` to standard error, and ends the program with its exit code.

    Also an interruption by a person ends it so. Can be used as a decorator, too.
    """
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    except AftershockError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
