"""The versions behind a result: Python, and the packages that compute, store and draw."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("aftershock", "matplotlib", "numpy", "pandas", "pyarrow", "pyspark", "scipy")


def versions() -> dict[str, str]:
    """By name; a package that is not installed is left out."""
    found = {package: _version(package) for package in PACKAGES}
    return {"python": platform.python_version()} | {name: known for name, known in found.items() if known is not None}


@cache
def _version(package: str) -> str | None:
    """What a process has imported stays as it is, and to look takes 5 ms."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
