"""The errors that reach a user: one line, with the cause and the remedy."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from experiments.secrets import carries_secret, is_not_shown
from experiments.wording import elided, is_large, on_one_line, shown


class _LeftOut:
    """Type of `LEFT_OUT`."""

    def __repr__(self) -> str:
        return "left out"


LEFT_OUT = _LeftOut()  # in the place of a value: the user gave none


class AftershockError(Exception):
    """Root of every error that is shown to a user as one line; `exit_code` is the command line's.

    The line is made safe to print here, so that code that shows an error need not do it.
    """

    exit_code = 3

    def __init__(self, message: str = "") -> None:
        super().__init__(on_one_line(message))


class BadInput(AftershockError):
    """The user's input cannot be used: names the field, the value unless it may be a secret, and what is allowed.

    `value` is `LEFT_OUT` if the user gave none. `source` is the file that the field stands in; "" of what stands in
    none, or where only the caller knows it.
    """

    exit_code = 2

    def __init__(self, field: str, value: object, allowed: str, source: str = "") -> None:
        field = field.partition("=")[0] if carries_secret(field) else field
        where = f"{source}: {elided(field)}" if source else elided(field)
        super().__init__(f"{where}: {_told(field, value)}; allowed: {allowed}")
        self.field, self.value, self.allowed, self.source = field, value, allowed, source


def _told(field: str, value: object) -> str:
    if value is LEFT_OUT:
        return repr(value)
    if value is None:
        return "null is not usable"  # as YAML and JSON write it
    told = "(not shown)" if not is_large(value) and is_not_shown(field, value) else shown(value)
    return f"{told} is not usable"


@contextmanager
def in_file(source: str, set_elsewhere: Sequence[str] = ()) -> Iterator[None]:
    """Within, what is wrong is told with the file that it stands in; another file, if one was told already, stays.

    Fields that were set elsewhere, and what is above or below them, are not the file's.
    """
    try:
        yield
    except BadInput as problem:
        if problem.source or any(_is_within(problem.field, f) or _is_within(f, problem.field) for f in set_elsewhere):
            raise
        raise BadInput(problem.field, problem.value, problem.allowed, source) from None


def _is_within(field: str, other: str) -> bool:
    """Whether a field is the other one, or below it."""
    return f"{field}.".startswith(f"{other}.")


class EnvironmentFailure(AftershockError):
    """The machine or the cluster failed: names the cause and the remedy, each safe to print and to write by itself."""

    def __init__(self, cause: str, remedy: str) -> None:
        # The words of other programs, and names of files, may be in either: their line ends are none.
        self.cause, self.remedy = (on_one_line(" ".join(text.split())) for text in (cause, remedy))
        super().__init__(f"{self.cause}; {self.remedy}")
