"""Every fuzzer of tests/fuzz, with few inputs; `python -m tests.fuzz` gives them many."""

import pytest

from tests.fuzz.catalogue import fuzzers
from tests.fuzz.session import Session, inputs_wanted

FUZZERS = fuzzers()


@pytest.mark.extended
@pytest.mark.parametrize("name", FUZZERS)
def test_no_input_gets_a_wrong_answer(name):
    session = Session(seed=1, inputs=inputs_wanted(FUZZERS[name].weight))
    FUZZERS[name].feed(session)
    assert session.fed > 0
    assert len(session.outcomes) > 1  # what gives every input the same answer looks at none
