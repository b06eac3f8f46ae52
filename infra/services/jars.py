"""The jars that pyspark does not bring: the Kafka broker, and Spark's Kafka connector with what it needs.

`jars.lock` names each file with its SHA-256, as `sha256sum` writes it. The files are resolved by the Ivy that ships
with pyspark and kept per user, in a folder named after the lock, so that checkouts of different versions do not meet.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from experiments.errors import AftershockError, EnvironmentFailure
from infra.services import ivy

LOCK = Path(__file__).with_name("jars.lock")
MODULES = Path(__file__).with_name("ivy.xml")
KINDS = ("connector", "broker")  # the configurations in ivy.xml


@dataclass(frozen=True)
class Jars:
    """The class paths: `connector` for the Spark driver and executors, `broker` for Kafka."""

    connector: list[Path]
    broker: list[Path]


def ensure_jars() -> Jars:
    """The jars, each with the digest of the lock; they are downloaded first when this user has none.

    Every digest is computed on every call (0.2 s): a jar that changes between two runs would falsify the second.
    Raises `EnvironmentFailure` that names the jar with a wrong digest, or why they could not be downloaded.
    """
    folder = cache_folder()
    if not folder.exists():
        _download(folder)
    _verify(folder, f"delete {folder} and run `make setup`")
    return class_paths()


def class_paths() -> Jars:
    """The jars, as `ensure_jars` left them when the run began: looks at no file."""
    folder, names = cache_folder(), list(_locked())
    return Jars(
        connector=[folder / name for name in names if name.startswith("connector/")],
        broker=[folder / name for name in names if name.startswith("broker/")],
    )


def retrieve(modules: Path, spark_version: str, scratch: Path) -> Path:
    """Download what a file of modules asks for, for that version of Spark; returns the folder with the jars.

    Raises `EnvironmentFailure` with Ivy's own reason.
    """
    folder = scratch / "jars"
    pattern = f"{folder}/[conf]/[artifact]-[revision](-[classifier]).[ext]"
    ivy.resolve(modules, spark_version, scratch, "-retrieve", pattern, "-types", "jar", "bundle")
    return folder


def lock_of(folder: Path) -> str:
    """What `jars.lock` has to say of the jars in a folder, in the order of the class paths."""
    found = [path for kind in KINDS for path in sorted((folder / kind).iterdir())]
    return "".join(f"{_digest(path)}  {path.relative_to(folder)}\n" for path in found)


def cache_folder() -> Path:
    """Where the jars of this lock are kept: below $AFTERSHOCK_CACHE, by default ~/.cache/aftershock."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aftershock"
    cache = Path(os.environ.get("AFTERSHOCK_CACHE") or default).resolve()
    return cache / "jars" / hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]


def _locked() -> dict[str, str]:
    """Digest by file name."""
    lines = (line.split() for line in LOCK.read_text(encoding="utf-8").splitlines())
    return {name: digest for digest, name in lines}


def _digest(path: Path) -> str:
    with path.open("rb") as jar:
        return hashlib.file_digest(jar, "sha256").hexdigest()


def _verify(folder: Path, remedy: str) -> None:
    for name, expected in _locked().items():
        try:
            digest = _digest(folder / name)
        except OSError as error:
            raise EnvironmentFailure(f"jar {folder / name} cannot be read ({error.strerror})", remedy) from None
        if digest != expected:
            raise EnvironmentFailure(f"jar {folder / name} has digest {digest}, expected {expected}", remedy)


def _download(folder: Path) -> None:
    """Fetch into a scratch folder and rename it into place, so that the folder is whole or not there."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder.parent) as scratch:
            _resolve(Path(scratch))
            fetched = Path(scratch) / "jars"
            _verify(fetched, f"nothing was kept: {LOCK.name} is of another PySpark, or the registry has another file")
            _keep(fetched, folder)
    except OSError as error:
        raise EnvironmentFailure(
            f"cannot store jars in {folder.parent} ({error.strerror})",
            "set AFTERSHOCK_CACHE to a folder that can be written and has 200 MB free",
        ) from None


def _keep(fetched: Path, folder: Path) -> None:
    try:
        fetched.rename(folder)
    except OSError:
        if not folder.is_dir():  # otherwise another process was faster, and its jars are verified like ours
            raise


def _resolve(scratch: Path) -> None:
    """Let Ivy download into `scratch`/jars; raises `EnvironmentFailure` with Ivy's own reason."""
    ivy.say(f"downloading {len(_locked())} jars (about a minute)")
    retrieve(MODULES, version("pyspark"), scratch)


def main() -> int:
    """Make sure of the jars; exit code 3 and one line when that fails."""
    try:
        ensure_jars()
    except AftershockError as failure:
        print(failure, file=sys.stderr)
        return failure.exit_code
    print(f"{len(_locked())} jars in {cache_folder()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
