"""What is read from protocols; that it is what table I of `checkmate` prints is a check of `checkmate/table-1`."""

from testbed.protocols import by_name
from testbed.protocols.features import FEATURES, features


def test_without_a_protocol_there_is_no_feature():
    assert features(by_name("none")) == dict.fromkeys(FEATURES, False)
