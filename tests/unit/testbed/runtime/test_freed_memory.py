"""Memory that was freed is used again without the kernel."""

import ctypes
import os
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy as np
from testbed.runtime.slot.freed_memory import keep_freed_memory

if {kept}:
    keep_freed_memory()
first, other = np.ones(1 << 21), np.ones(1 << 21)
del first, other
begun = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    first, other = np.ones(1 << 21), np.ones(1 << 21)
    del first, other
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - begun)
"""


def page_faults(kept):
    settings = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    program = [sys.executable, "-c", PROGRAM.format(kept=kept)]
    found = subprocess.run(program, env=settings, capture_output=True, check=True)
    return int(found.stdout)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library has no mallopt")
def test_blocks_of_16_mb_are_used_again_without_a_page_fault():
    assert 10 * page_faults(True) < page_faults(False)
