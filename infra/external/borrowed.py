"""What a run knows of an existing cluster: its description and its hosts' names, kept in the run's cluster folder.

The description is copied when the run begins, so that a change of the file does not reach into the run.

    ROOT/external/borrowed.json      this
    ROOT/external/struck-HOST.KIND   a fault that was struck and is not healed (`infra.external.notes`)
    ROOT/external/topics.json        the topics that the run makes
    ROOT/hosts/gateway/logs/commands.log
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from experiments.documents.parsing import Spec
from experiments.errors import EnvironmentFailure
from experiments.external_cluster import ExternalCluster, FaultCommands
from experiments.fault_kinds import STRENGTH, FaultKind
from infra import credentials
from infra.cluster import Handle
from infra.external.commands import Ended
from infra.external.notes import Note

FOLDER, FILE, TOPICS_FILE, LOG = "external", "borrowed.json", "topics.json", "logs/commands.log"
STRUCK = "struck-"


class Borrowed(Spec):
    """The cluster, what its user calls the hosts that the run calls `worker-1` and so on, and their listed domains."""

    cluster: ExternalCluster
    names: dict[str, str]
    domains: dict[str, tuple[str, ...]]

    def save(self, root: Path) -> None:
        """Keep it below the root of the run's cluster."""
        folder = root / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        credentials.write_private(folder / FILE, json.dumps(self.model_dump(mode="json")))


@dataclass(frozen=True)
class Borrowing:
    """The files of one run about the cluster that it borrows."""

    handle: Handle

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return Path(self.handle.root) / FOLDER

    @cached_property
    def known(self) -> Borrowed:
        """What the run knows; raises `EnvironmentFailure` if the file is damaged."""
        try:
            return Borrowed.model_validate_json((self.folder / FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            path = self.folder / FILE
            raise EnvironmentFailure(f"{path} is damaged", "bring back by hand what the run has struck") from None

    def commands(self, kind: FaultKind) -> FaultCommands:
        """The commands of a kind of fault; raises `EnvironmentFailure` for one that has none."""
        if kind not in self.known.cluster.faults:
            raise EnvironmentFailure(f"there are no commands for faults of kind {kind.value}", "add them to the file")
        return self.known.cluster.faults[kind]

    def called(self, host: str) -> str:
        """A host by both of its names."""
        return f"{host} ({self.known.names[host]})"

    def note(self, host: str, kind: FaultKind) -> Note:
        """The file that says that a fault was struck and is not healed."""
        return Note(self.folder / f"{STRUCK}{host}.{kind.value}")

    def struck(self) -> list[tuple[str, FaultKind]]:
        """Host and kind of the faults that are not healed, the strongest first."""
        names = [path.name.removeprefix(STRUCK).partition(".") for path in sorted(self.folder.glob(f"{STRUCK}*"))]
        return sorted(((host, FaultKind(kind)) for host, _, kind in names), key=lambda struck: -_strength(struck[1]))

    def outdone(self, host: str, kind: FaultKind) -> list[FaultKind]:
        """The weaker faults of that host that a fault of this kind has ended and that are not healed."""
        return [other for name, other in self.struck() if name == host and _strength(other) < _strength(kind)]

    @property
    def healing_limit_s(self) -> float:
        """How long it can take at most to heal a host [s].

        Two looks, a strike and its proof may be under way. Then each kind may need its heal and the proof of that.
        """
        return (4 + 2 * len(self.known.cluster.faults)) * self.known.cluster.limit_s

    def log(self, called: str, ended: Ended, due_ns: int | None = None) -> Ended:
        """Add a line about a command to the log: how late it was started, when its end was seen, and its exit code.

        What is started ahead may have ended well before somebody looks. A line for which the disk has no room is left
        out.
        """
        late = "" if due_ns is None else f"{(ended.began_ns - due_ns) / 1e6:.1f} ms late, "
        took_ms = (ended.ended_ns - ended.began_ns) / 1e6
        path = self.handle.directory(self.handle.gateway.name) / LOG
        with suppress(OSError), path.open("a", encoding="utf-8") as file:
            file.write(
                f"{ended.began_ns / 1e9:.3f} {called}: {late}end seen after {took_ms:.0f} ms, exit code {ended.code}\n"
            )
        return ended


def _strength(kind: FaultKind) -> int:
    return STRENGTH[kind.effect]
