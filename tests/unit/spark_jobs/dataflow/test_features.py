"""Table I of `checkmate`, from the protocols themselves."""

import pytest

from spark_jobs.dataflow.protocols import PROTOCOLS
from spark_jobs.dataflow.protocols.features import FEATURES, features

PRINTED = {
    "coordinated": "x----x--",
    "uncoordinated": "-xx-x-x-",
    "communication-induced": "-xxxx-xx",
    "none": "--------",  # not in the table: it has nothing
}


@pytest.mark.parametrize("name", list(PROTOCOLS))
def test_a_protocol_has_the_features_that_the_paper_prints(name):
    assert features(PROTOCOLS[name]) == {
        feature: mark == "x" for feature, mark in zip(FEATURES, PRINTED[name], strict=True)
    }
