"""A prepared partition, with a stand-in for nft that knows only whether there is a table."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from experiments.fault_kinds import Direction
from infra import programs
from infra.strikes.partition import NetworkPartition, has_table, reconnect

NFT = """\
#!/bin/sh
if [ "$1" = -j ]; then [ -e {table} ] && echo '{{"nftables": [{{"table": {{}}}}]}}'; exit; fi
case "$(cat)" in *delete*) rm -f {table};; *chain*) : > {table};; esac
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that is there while there is a table."""
    found, nft = tmp_path / "table", tmp_path / "nft"
    nft.write_text(NFT.format(table=found))
    nft.chmod(0o755)
    monkeypatch.setattr(programs, "environment", lambda: {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return found


def test_chains_that_the_heal_of_an_earlier_partition_took_along_are_there_when_the_strike_is_due(
    token: str, table: Path
) -> None:
    """To hook them in takes up to a fifth of a second."""
    strike = NetworkPartition(f"{token}/worker-1", [], Direction.BOTH)
    assert table.exists()
    reconnect()
    assert not has_table()
    assert not strike.refresh(), "the host has no process"
    assert table.exists()
    strike.close()
    assert not table.exists()
