"""A prepared partition, with a stand-in for nft that knows only whether there is a table."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from experiments.fault_kinds import Direction
from infra.strikes.partition import NetworkPartition, has_table, reconnect, refusal

NFT = """\
#!/bin/sh
if [ "$1" = -j ]; then [ -e {table} ] && echo '{{"nftables": [{{"table": {{}}}}]}}'; exit; fi
case "$(cat)" in *delete*) rm -f {table};; *chain*) : > {table};; esac
"""


def put_in_place(folder: Path, monkeypatch: pytest.MonkeyPatch, **scripts: str) -> None:
    """Have these scripts in the place of the programs of their names."""
    for name, text in scripts.items():
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that is there while there is a table."""
    put_in_place(tmp_path, monkeypatch, nft=NFT.format(table=tmp_path / "table"))
    return tmp_path / "table"


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


@pytest.mark.parametrize(
    ("listing", "refused"),
    [("echo '{}'", None), ("echo 'JSON support not compiled-in' >&2; exit 1", "JSON support not compiled-in")],
)
def test_an_nft_whose_rules_cannot_be_seen_is_refused(
    listing: str, refused: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would look as if no rule were there: no strike could be proved, and every heal would be."""
    nft = f'#!/bin/sh\nif [ "$1" = -j ]; then {listing}; else cat >/dev/null; fi\n'
    put_in_place(tmp_path, monkeypatch, unshare='#!/bin/sh\nshift\nexec "$@"\n', nft=nft)
    assert refusal() == refused
