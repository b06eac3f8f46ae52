"""The checkpoints that are stored, as the coordinator knows them: lines, what is stable, and what is garbage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from experiments.errors import EnvironmentFailure
from testbed.core.checkpoints import OUTSIDE, Checkpoint, Line, Taken, at_border, initial_line, is_needed
from testbed.core.dataflow.layout import Channel, Layout

FindLine = Callable[[Taken, Sequence[Channel]], Line]


@dataclass(frozen=True)
class KeptHistory:
    """What a `History` knew at a moment.

    taken, logs  by partition the checkpoints that are kept, and those with logs
    lines        of each line that is kept, the numbers of its checkpoints
    published    by sink, the last checkpoint whose output it had published
    """

    taken: tuple[tuple[Checkpoint, ...], ...]
    logs: tuple[tuple[Checkpoint, ...], ...]
    lines: tuple[tuple[int, ...], ...]
    published: dict[int, int]


class History:
    """The checkpoints of every partition in the order in which they were taken, from the stable line on.

    Besides the newest line, `spare_lines` older lines are kept, in case the store damages objects. The oldest of
    these is the stable line. No recovery ever rolls back beyond it, so what it covers may be published, and what only
    earlier lines need may be deleted.

    With batches, a checkpoint that a partition stored before it rolled back equals the one that it stores again under
    the same number. So it is kept until then, up to the last number of the line.

    If the store has also damaged objects that the stable line needs, the partition can still start from the beginning
    under protocols with `begins_anew`: its checkpoint 0 needs no object, and neither do those of the partitions that
    make its input.
    """

    def __init__(
        self,
        layout: Layout,
        find_line: FindLine,
        spare_lines: int,
        by_borders: bool = False,
        begins_anew: bool = False,
    ) -> None:
        """`by_borders`: whether checkpoints with one number lie at one border of batches."""
        self._begins_anew = begins_anew
        self._layout, self._find, self._spare, self._by_borders = layout, find_line, spare_lines, by_borders
        self.taken: list[list[Checkpoint]] = [[each] for each in initial_line(layout)]
        self._logs: list[list[Checkpoint]] = [[] for _ in layout.partitions]
        self._lines: list[Line] = [initial_line(layout)]
        self._published: dict[int, int] = {}

    def kept(self) -> KeptHistory:
        """What is known now."""
        taken, logs = (tuple(map(tuple, of)) for of in (self.taken, self._logs))
        lines = tuple(tuple(at.number for at in line) for line in self._lines)
        return KeptHistory(taken, logs, lines, dict(self._published))

    def go_on_from(self, kept: KeptHistory) -> None:
        """Know what another history of this dataflow knew."""
        self.taken, self._logs = list(map(list, kept.taken)), list(map(list, kept.logs))
        found = [{each.number: each for each in of} for of in self.taken]
        self._lines = [tuple(of[at] for of, at in zip(found, line, strict=True)) for line in kept.lines]
        self._published = dict(kept.published)

    @property
    def last(self) -> int:
        """The highest number of any checkpoint that is known."""
        return max(of[-1].number for of in self.taken)

    @property
    def stable(self) -> Line:
        """The oldest line that is kept."""
        return self._lines[0]

    @property
    def line(self) -> Line:
        """The line that a recovery would go to now."""
        return self._lines[-1]

    def published(self, partition: int) -> int:
        """The last checkpoint whose output this sink has published; 0 for none."""
        return self._published.get(partition, 0)

    @property
    def is_published(self) -> bool:
        """Whether all output that the stable line covers is published."""
        logs = (log for at in self.stable for log in self._logs[at.partition] if log.number <= at.number)
        return not any(log.logged.get(OUTSIDE, 0) > self.published(log.partition) for log in logs)

    def add(self, checkpoint: Checkpoint) -> list[str]:
        """Another checkpoint is stored; returns the objects that became garbage."""
        garbage = self._replace(checkpoint)
        if checkpoint.log_key is not None:
            self._logs[checkpoint.partition].append(checkpoint)
        line = self._find(self.taken, self._layout.channels)
        if line != self.line:
            self._lines.append(line)
        return garbage + (self._trim() if len(self._lines) > self._spare + 1 else [])

    def publish(self, partition: int, number: int) -> list[str]:
        """A sink has published its output up to a checkpoint; returns the objects that became garbage."""
        self._published[partition] = max(number, self.published(partition))
        return self._trim_logs()

    def recover(self, partitions: frozenset[int], passed: Mapping[int, int]) -> list[str]:
        """Everything of these partitions after the line is undone; returns the objects that became garbage.

        Of those that copies take the place of, nothing is undone up to the checkpoint whose border the copy is known to
        have `passed`: the copy takes it no more, and neither an earlier one.
        """
        line = self._find(self.taken, self._layout.channels)
        kept = [each for each in self._lines if all(a.number <= b.number for a, b in zip(each, line, strict=True))]
        self._lines = kept if kept[-1] == line else [*kept, line]
        before, last = self.keys(), max(each.number for each in line)
        for at in (each for each in line if each.partition in partitions):
            until = max(last if self._by_borders else at.number, passed.get(at.partition, 0))
            self.taken[at.partition] = [each for each in self.taken[at.partition] if each.number <= until]
            self._logs[at.partition] = [each for each in self._logs[at.partition] if each.number <= until]
        return sorted(before - self.keys()) + (self._trim() if len(self._lines) > self._spare + 1 else [])

    def drop_unreadable(self, partition: int, key: str) -> None:
        """The checkpoints that need this object are lost; if it is the log of a checkpoint, all later ones are, too.

        Raises `EnvironmentFailure` if the stable line is among them, and the partition can't start from the beginning.
        """
        lost = {each.number for each in self.taken[partition] if key in each.state_keys}
        logs = [each.number for each in self._logs[partition] if each.log_key == key]
        lost |= {each.number for each in self.taken[partition] if logs and each.number >= logs[0]}
        if not lost:
            return
        # A line by borders may lie further back for some, so the border of the stable line is its highest number.
        if self._begins_anew and min(lost) <= max(each.number for each in self.stable):
            self._begin_anew(partition, lost)
            return
        if min(lost) <= self.stable[partition].number:
            raise EnvironmentFailure(
                f"no line of checkpoints is left for {self._layout.partitions[partition].name}: {key} can't be read",
                "start the run again, or keep more spare lines",
            )
        self.taken[partition] = [each for each in self.taken[partition] if each.number not in lost]
        self._lines = [line for line in self._lines if line[partition].number not in lost]

    def _begin_anew(self, partition: int, lost: set[int]) -> None:
        """The others can roll back to the same lines as before, since they know what they have of its output."""
        of = self.taken[partition]
        of[:] = [replace(each, lost=True) if each.number in lost else each for each in of]
        initial = initial_line(self._layout)
        for number in self._layout.with_upstream({partition}):
            if self.taken[number][0] != initial[number]:
                self.taken[number].insert(0, initial[number])
        lines, self._lines = self._lines, []
        for last in (max(each.number for each in line) for line in lines):
            found = self._find(
                [[each for each in of if each.number <= last] for of in self.taken], self._layout.channels
            )
            if found not in self._lines:
                self._lines.append(found)

    def replayed_logs(self, partition: int) -> tuple[str, ...]:
        """The logs of a partition, in order, with what is in flight at the line or has yet to be published."""
        number = self.line[partition].number
        logs = (each for each in self._logs[partition] if each.number <= number)
        return tuple(each.log_key for each in logs if each.log_key and self._is_needed(each, self.line))

    def keys(self) -> set[str]:
        """Every object that is known."""
        states = {key for of in self.taken for each in of for key in each.state_keys}
        return states | {each.log_key for of in self._logs for each in of if each.log_key}

    def needed_by_stable(self) -> set[str]:
        """The objects without which the stable line is lost, and with it everything."""
        states = {key for at in self.stable for key in at.state_keys}
        logs = (log for at in self.stable for log in self._logs[at.partition] if log.number <= at.number)
        return states | {log.log_key for log in logs if log.log_key}

    def covered(self, line: Line) -> Line:
        """Where partitions are when all that a line covers is processed: a line by borders may lie further back for
        those whose output has to be made again (`testbed.output_log`)."""
        border = max(each.number for each in line)
        found = (at_border(self.taken[at.partition], border) or at for at in line)
        return tuple(found) if self._by_borders else line

    def _replace(self, checkpoint: Checkpoint) -> list[str]:
        """Take a checkpoint in, instead of one with its number from before a recovery; returns what is garbage now.

        But not instead of one that a line has: that one is as good, and the line may be stable. The objects of the new
        one are known as soon as a later one that builds on it is.
        """
        of = self.taken[checkpoint.partition]
        if any(line[checkpoint.partition].number == checkpoint.number for line in self._lines):
            return []
        later = [each for each in of if each.number > checkpoint.number]
        earlier = [each for each in of if each.number < checkpoint.number]
        before = self.keys() if len(earlier) + len(later) < len(of) else set()
        of[:] = [*earlier, checkpoint, *later]
        return sorted(before - self.keys())

    def _is_needed(self, log: Checkpoint, line: Line) -> bool:
        return is_needed(log, line, self._layout.channels, self.published(log.partition))

    def _trim(self) -> list[str]:
        del self._lines[: len(self._lines) - self._spare - 1]
        before = self.keys()
        for at in self.stable:
            of = self.taken[at.partition]
            del of[: of.index(at)]
        return sorted(before - self.keys() - set(garbage := self._trim_logs())) + garbage

    def _trim_logs(self) -> list[str]:
        logs = (each for of in self._logs for each in of if not self._is_needed(each, self.stable))
        garbage = [each.log_key for each in logs if each.log_key]
        self._logs = [[each for each in of if self._is_needed(each, self.stable)] for of in self._logs]
        return garbage
