"""The errors that reach a user: one line, with the cause and the remedy."""

from experiments.secrets import carries_secret, is_not_shown


class AftershockError(Exception):
    """Root of every error that is shown to a user as one line; `exit_code` is the command line's."""

    exit_code = 3


class BadInput(AftershockError):
    """The user's input cannot be used: names the field, the value unless it may be a secret, and what is allowed."""

    exit_code = 2

    def __init__(self, field: str, value: object, allowed: str) -> None:
        field = field.partition("=")[0] if carries_secret(field) else field
        shown = "(not shown)" if is_not_shown(field, value) else _short(repr(value))
        super().__init__(f"{field}: {shown} is not usable; allowed: {allowed}")
        self.field, self.value, self.allowed = field, value, allowed


class EnvironmentFailure(AftershockError):
    """The machine or the cluster failed: names the cause and the remedy."""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(f"{cause}; {remedy}")
        self.cause, self.remedy = cause, remedy


LONGEST_SHOWN = 200


def _short(text: str) -> str:
    """A text that fits a line; of a long one its beginning and end."""
    half = LONGEST_SHOWN // 2
    return text if len(text) <= LONGEST_SHOWN else f"{text[:half]} ... {text[-half:]}"
