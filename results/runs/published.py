"""Published results: where they are, how each was made, and whether this version can read them.

published/runs/RUN_ID/ and published/reproductions/PAPER/FIGURE/ are laid out as below the home. Each of these folders
has a `published.json`, and is no result without it. Others may have written them: they are read as any document is.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from results.damage import Outdated
from results.runs.home import published_folder
from results.runs.json_files import Document, Name, Whole, read_document
from results.tables.schema import SCHEMA_VERSION

ABOUT = "published.json"
FORMAT = 1  # counts up when what is published, or how, changes
COMMAND = r"aftershock (benchmark|reproduce)( [A-Za-z0-9_./=,-]+)+"  # what a page may show for people to copy
folder = published_folder
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Format(Document):
    format: Whole


class Publication(_Format):
    """How a published result came about.

    command      the command that makes it again; a measured result then has other values
    machine      the class of the machine (`results.runs.machine`)
    versions     of what had a part in it; `versions_of` says when they were looked up: with the "result", or at its
                 "publication" where the result did not record them
    example      the experiment of the repository that a run is of
    judged_again  the day [UTC] on which a table was judged again by later checks; the rest tells how it was made
    files        the others of its folder, each with its SHA-256
    """

    command: Annotated[str, Field(pattern=f"^{COMMAND}$", max_length=300)]
    machine: Name
    versions: Annotated[dict[Name, Name], Field(max_length=50)]
    versions_of: Annotated[str, Field(pattern="^(result|publication)$")]
    example: Name | None = None
    judged_again: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")] | None = None
    files: Annotated[dict[Name, Digest], Field(max_length=1000)]


def is_there(root: Path) -> bool:
    """Whether there is a published result in this folder, be it damaged."""
    return os.path.lexists(root / ABOUT)


def read(root: Path, owner: str) -> Publication:
    """How a published result came about; `owner` is the id of the result.

    Raises `FileNotFoundError` where nothing is, `Damaged` for what is no such document, and `Outdated` for one of
    another format.
    """
    found = read_document(root / ABOUT, _Format, owner)
    if found.format != FORMAT:
        raise _outdated(owner, f"it is of format {found.format}, and this version reads {FORMAT}")
    return read_document(root / ABOUT, Publication, owner)


def contents(root: Path) -> dict[str, bytes]:
    """The files of a result by their names below its folder; links are left out."""
    paths = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def digests(files: Mapping[str, bytes]) -> dict[str, str]:
    """The SHA-256 of each file."""
    return {name: hashlib.sha256(found).hexdigest() for name, found in sorted(files.items())}


def spoiled(about: Publication, files: Mapping[str, bytes]) -> list[str]:
    """The files that are not as they were published: changed, added, or missing."""
    found = digests({name: content for name, content in files.items() if name != ABOUT})
    return sorted(dict(found.items() ^ about.files.items()))


def require_version_of_run(root: Path, run_id: str, schema_version: int | None) -> None:
    """Raise `Outdated` for a published run whose tables are of another version; raises as `read` does, too."""
    read(root, run_id)
    if schema_version != SCHEMA_VERSION:
        told = f"its tables are of version {schema_version}, and this version reads {SCHEMA_VERSION}"
        raise _outdated(run_id, told)


def _outdated(owner: str, why: str) -> Outdated:
    """Names no command from the file, which others may have written."""
    make = f"`aftershock reproduce {owner}`" if "/" in owner else "`aftershock benchmark` with its example"
    again = f" {owner}" if "/" in owner else ""
    return Outdated(owner, ABOUT, why, f"{make}, then `aftershock results publish{again}`, make it again")
