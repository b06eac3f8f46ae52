"""What a state has told, put into another one."""

from testbed.operators.state import decode_state, encode_state


def moved(changes, again):
    """Apply changes to another state as a restored partition does, from bytes, and end its span."""
    data = b"".join(encode_state("test.0", piece) for piece in changes.pieces())
    for piece in decode_state(data):
        again.apply(piece)
    again.end_span()
    return again
