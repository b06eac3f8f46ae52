"""Exports runs to a folder or a ZIP file, with a manifest."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from experiments.errors import BadInput
from results.runs.store import Run, write_json

MANIFEST = "manifest.json"
RAW = "raw"


def export(runs: Iterable[Run], out: Path, raw: bool = False) -> dict[str, Any]:
    """Write the results of the runs to `out`, a ZIP file if it is named so and else a folder; returns the manifest.

    The manifest has for each run `{run_id, schema_version, files: {path: SHA-256}}`, paths from the top of what was
    written. Raw logs, from which results can be computed again, only if `raw`. Raises `BadInput` where something is
    already, and `Damaged` for a run whose status cannot be read.
    """
    if out.exists():
        raise BadInput("--out", str(out), "a path where nothing is yet")
    if not out.parent.is_dir():
        raise BadInput("--out", str(out), "a path in a folder that exists")
    with TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent, ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch) / "runs"  # has the usual mode, unlike the scratch folder
        folder.mkdir()
        manifest = {"runs": [_copy(run, folder, raw) for run in runs]}
        write_json(folder / MANIFEST, manifest)
        _finish(folder, out)
    return manifest


def _copy(run: Run, folder: Path, raw: bool) -> dict[str, Any]:
    """Copy what belongs to a run's results, links and hidden files excepted."""
    target, version = folder / run.run_id, run.status().schema_version
    files = {}
    for path in sorted(run.root.rglob("*")):
        name = path.relative_to(run.root)
        hidden = any(part.startswith(".") for part in name.parts)
        if hidden or path.is_symlink() or not path.is_file() or (name.parts[0] == RAW and not raw):
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target / name)
        files[f"{run.run_id}/{name.as_posix()}"] = _digest(target / name)
    return {"run_id": run.run_id, "schema_version": version, "files": files}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _finish(folder: Path, out: Path) -> None:
    if out.suffix != ".zip":
        folder.rename(out)
        return
    zipped = folder.with_suffix(".zip")
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder))
    zipped.rename(out)
