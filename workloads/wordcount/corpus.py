"""Real text for the word count: a file or folder, or the docs and sources of the installed packages."""

from __future__ import annotations

import functools
import itertools
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

from experiments.documents.parsing import user_path
from experiments.errors import BadInput
from experiments.workloads.catalogue import WordCountSpec
from workloads.schedule import Schedule

TEXT_FILES = (".py", ".md", ".rst", ".txt", ".html")
PASSAGE_BYTES = 200  # a record holds lines of one file until it is this long
LONGEST_LINE = 400


def records(spec: WordCountSpec, _schedule: Schedule) -> Callable[[int, int], list[bytes]]:
    """The workload's input: the passages, one after the other and over again."""
    texts = _known_passages(spec)
    return lambda start, stop: [texts[position % len(texts)] for position in range(start, stop)]


@functools.lru_cache(maxsize=1)
def _known_passages(spec: WordCountSpec) -> list[bytes]:
    """The passages, read once: a generator asks again whenever its rate changes."""
    return passages(spec)


def passages(spec: WordCountSpec) -> list[bytes]:
    """Passages of text, at most `spec.corpus_mb` of them, in an order that depends on the files alone.

    Raises `BadInput` when the corpus does not exist, cannot be read, or holds no text.
    """
    root = user_path(spec.corpus) if spec.corpus else Path(sysconfig.get_paths()["purelib"])
    try:
        if not root.exists():
            raise BadInput("workload.corpus", spec.corpus, "a file or folder that exists")
        found = _first(root, int(spec.corpus_mb * 2**20))
    except OSError as error:
        raise BadInput("workload.corpus", str(root), f"text that can be read ({error.strerror})") from None
    if not found:
        raise BadInput("workload.corpus", str(root), f"text in files that end in {', '.join(TEXT_FILES)}")
    return found


def _first(root: Path, room: int) -> list[bytes]:
    """The first passages, until they have that many bytes."""
    found: list[bytes] = []
    for passage in itertools.chain.from_iterable(map(_read, _files(root))):
        found.append(passage)
        room -= len(passage)
        if room <= 0:
            break
    return found


def _files(root: Path) -> Iterator[Path]:
    if root.is_file():
        return iter([root])
    return (path for path in sorted(root.rglob("*")) if path.suffix in TEXT_FILES and path.is_file())


def _read(path: Path) -> Iterator[bytes]:
    """The passages of a file, which is read as far as they are asked for: it may be larger than the memory."""
    passage = b""
    with path.open(encoding="latin-1") as file:  # every byte is a character of it, and each kind of line end is one
        for line in file:
            passage = (passage + b" " + line.encode("latin-1").strip()[:LONGEST_LINE]).strip()
            if len(passage) >= PASSAGE_BYTES:
                yield passage
                passage = b""
    if passage:
        yield passage
