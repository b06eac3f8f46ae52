"""The load of the machine that a benchmark runs on."""

from __future__ import annotations

import os


def load_of_others() -> float:
    """The load average of the last minute. To be read before a run: later on it includes the run itself."""
    return os.getloadavg()[0]
