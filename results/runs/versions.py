"""The versions of what has a part in a result: Python, and the packages that compute, store and draw."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("aftershock", "matplotlib", "numpy", "pandas", "pyarrow", "pyspark", "scipy")


def versions() -> dict[str, str]:
    """By name; a package that is not installed is left out."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
