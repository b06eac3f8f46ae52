"""Spark puts the folder of a program that it runs first on Python's path: modules and packages there hide
others of their name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = sorted(path.parent for path in (ROOT / "spark_jobs").glob("*/__init__.py"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_no_module_beside_a_program_hides_a_package(folder: Path) -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} | set(sys.stdlib_module_names)
    beside = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    assert beside & packages == set()


def test_there_are_folders() -> None:
    assert {"streaming", "tables", "testbed"} <= {folder.name for folder in FOLDERS}
