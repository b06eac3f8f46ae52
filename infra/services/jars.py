"""The jars that pyspark does not bring: the Kafka broker, and Spark's Kafka connector with what it needs.

`jars.lock` names each file with its SHA-256, as `sha256sum` writes it. The files are resolved by the Ivy that ships
with pyspark and kept per user, in a folder named after the lock, so that checkouts of different versions do not meet.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO

from experiments.errors import AftershockError, EnvironmentFailure
from infra.services.jvm import find_java

LOCK = Path(__file__).with_name("jars.lock")
MODULES = Path(__file__).with_name("ivy.xml")
PROGRESS_EVERY_S = 5.0
SILENCE_LIMIT_S = 300.0  # Ivy, which has no time limit, prints a dot now and then while it downloads
CHUNK_BYTES = 65536
AGAIN = "check the network and run `make setup` again"


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


def cache_folder() -> Path:
    """Where the jars of this lock are kept: below $AFTERSHOCK_CACHE, by default ~/.cache/aftershock."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aftershock"
    cache = Path(os.environ.get("AFTERSHOCK_CACHE") or default).resolve()
    return cache / "jars" / hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]


def _locked() -> dict[str, str]:
    """Digest by file name."""
    lines = (line.split() for line in LOCK.read_text(encoding="utf-8").splitlines())
    return {name: digest for digest, name in lines}


def _verify(folder: Path, remedy: str) -> None:
    for name, expected in _locked().items():
        try:
            with (folder / name).open("rb") as jar:
                digest = hashlib.file_digest(jar, "sha256").hexdigest()
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
    pattern = f"{scratch}/jars/[conf]/[artifact]-[revision](-[classifier]).[ext]"
    properties = {"ivy.default.ivy.user.dir": f"{scratch}/ivy", "spark.version": version("pyspark")}
    command = [str(find_java().launcher), *(f"-D{name}={value}" for name, value in properties.items())]
    command += ["-jar", str(_ivy())]
    command += ["-cache", f"{scratch}/ivy", "-ivy", str(MODULES), "-retrieve", pattern, "-types", "jar", "bundle"]
    _say(f"downloading {len(_locked())} jars (about a minute)")
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as ivy:
        try:
            reason = _follow(_lines(ivy.stdout))
        except BaseException:
            ivy.kill()
            raise
    if ivy.returncode:
        free_mb = shutil.disk_usage(scratch).free // 10**6
        raise EnvironmentFailure(
            f"Ivy could not resolve the jars ({reason or f'exit code {ivy.returncode}'}; {free_mb} MB free)",
            AGAIN,
        )


def _ivy() -> Path:
    spec = importlib.util.find_spec("pyspark")
    found = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar")) if spec and spec.origin else []
    if not found:
        raise EnvironmentFailure("the Ivy jar of pyspark is missing", "delete .venv and run `make setup`")
    return found[-1]


def _lines(output: IO[bytes] | None) -> Iterator[str]:
    """What Ivy prints, line by line; raises `EnvironmentFailure` once it prints nothing for `SILENCE_LIMIT_S`."""
    begun = b""
    while output is not None:
        if not select.select([output], [], [], SILENCE_LIMIT_S)[0]:
            raise EnvironmentFailure(f"the download of the jars stood still for {SILENCE_LIMIT_S:g} s", AGAIN)
        if not (said := os.read(output.fileno(), CHUNK_BYTES)):
            yield begun.decode(errors="replace")
            return
        *lines, begun = (begun + said).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)


def _follow(lines: Iterable[str]) -> str:
    """Print how far Ivy is now and then; returns the first line that tells why it failed, empty if none does."""
    resolved, fetched, said = 0, 0, time.monotonic()
    reason = ""
    for line in lines:
        resolved += "\tfound " in line
        fetched += "[SUCCESSFUL" in line
        if not reason and any(word in line for word in ("not found", "Exception", "access error", "FAILED")):
            reason = " ".join(line.split())
        if time.monotonic() - said > PROGRESS_EVERY_S:
            said = time.monotonic()
            _say(f"{resolved} modules resolved, {fetched} jars downloaded")
    return reason


def _say(text: str) -> None:
    print(f"jars: {text}", file=sys.stderr, flush=True)


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
