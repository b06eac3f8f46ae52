"""What the commands about a topology share: the file, and lists of tasks."""

from __future__ import annotations

import argparse


def add_topology(declared: argparse.ArgumentParser) -> None:
    declared.add_argument("topology", metavar="TOPOLOGY.json", help="operators and streams (docs/topologies.md)")


def task_names(text: str) -> list[str]:
    """The tasks of a list such as `O2.1,O3.0`; spaces around a name and an empty list are fine."""
    return [name.strip() for name in text.split(",") if name.strip()]
