"""Every fuzzer of the repository, by its name."""

from __future__ import annotations

import importlib
from pathlib import Path

from tests.fuzz.session import Fuzzer


def fuzzers() -> dict[str, Fuzzer]:
    """Those in `FUZZERS` of each module beside this one whose name begins with `fuzz_`."""
    found: dict[str, Fuzzer] = {}
    for path in sorted(Path(__file__).parent.glob("fuzz_*.py")):
        for fuzzer in importlib.import_module(f"tests.fuzz.{path.stem}").FUZZERS:
            if fuzzer.name in found:
                raise ValueError(f"two fuzzers are called {fuzzer.name}")
            found[fuzzer.name] = fuzzer
    return found
