"""Does several things, none of which keeps the others from being done, and tells what went wrong with each."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from experiments.errors import BadInput, EnvironmentFailure


def each_tried(acts: Iterable[Callable[[], object]]) -> list[EnvironmentFailure]:
    """Do all of these, even if some of them fail; returns what went wrong."""
    failures = []
    for act in acts:
        try:
            act()
        except EnvironmentFailure as failure:
            failures.append(failure)
        except BadInput as error:
            failures.append(EnvironmentFailure(str(error), "change it"))
        except OSError as error:
            cause = f"{error.filename or 'the system'}: {error.strerror or error}"
            failures.append(EnvironmentFailure(cause, "see the kernel's log"))
    return failures


def try_all(*acts: Callable[[], object]) -> None:
    """Do all of these, even if some of them fail; raises one `EnvironmentFailure` that has each cause and remedy."""
    if failures := each_tried(acts):
        causes = "; ".join(failure.cause for failure in failures)
        raise EnvironmentFailure(causes, "; ".join(dict.fromkeys(failure.remedy for failure in failures)))
