"""A cluster that is already there, for tests: its hosts are files, and a shell script is the user's commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PROGRAM = """#!/bin/sh
# Each host is a file in `up`; one that is down is in `down`.
cd "$(dirname "$0")"
echo "$@" >>called
case "$1" in
list) for host in up/* down/*; do [ -e "$host" ] && cat "$host"; done; true ;;
kill) mv "up/$2" down ;;
dead) [ -e "down/$2" ] && date +%s.%N ;;
start) [ -e "up/$2" ] || mv "down/$2" up ;;
alive) [ -e "up/$2" ] && date +%s.%N ;;
esac
"""
COMMANDS = {
    "strike": ["./host", "kill", "{host}"],
    "prove": ["./host", "dead", "{host}"],
    "heal": ["./host", "start", "{host}"],
    "prove_healed": ["./host", "alive", "{host}"],
}


def make(folder: Path, hosts: int = 2, **changes: Any) -> Path:
    """A folder with the cluster, its commands and its description; returns the path of that."""
    for name in ("up", "down", "checkpoints"):
        (folder / name).mkdir(parents=True)
    for number in range(1, hosts + 1):
        (folder / "up" / f"pod-{number}").write_text(f"pod-{number} 127.0.0.{number + 100} zone-{number}\n", "utf-8")
    program(folder / "host", PROGRAM)
    path = folder / "cluster.json"
    path.write_text(json.dumps(description(folder) | changes), encoding="utf-8")
    return path


def description(folder: Path) -> dict[str, Any]:
    return {
        "master": "yarn",
        "address": "127.0.0.1",
        "brokers": "127.0.0.1:9",
        "checkpoints": str(folder / "checkpoints"),
        "list_hosts": ["./host", "list"],
        "faults": {"kill": COMMANDS},
        "limit_s": 60,
    }


def program(path: Path, text: str) -> Path:
    """An executable script."""
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path
