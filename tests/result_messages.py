"""Messages with results, as the archive reads them."""

import json

from workloads.results import VALUE


def fields(message: str) -> tuple[int, int, str, str]:
    """`start_ms`, `end_ms`, `key` and `value` of a result; the value as the text that it is in the message."""
    head, value = message.split(VALUE, 1)
    found = json.loads(head + "}")
    return found["start_ms"], found["end_ms"], found["key"], value.removesuffix("}")
