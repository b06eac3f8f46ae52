"""Why a topic can't be read: missing input is named, since a partition that starts again needs it."""

from confluent_kafka import KafkaError

from testbed.runtime.connectors.topic_reader import failed_to_read


def test_input_that_is_gone_is_named_in_one_line():
    for code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
        told = str(failed_to_read(KafkaError(code), "prices", 3, 17))
        assert "the topic prices no longer has what partition 3 had from offset 17 on" in told
        assert "\n" not in told


def test_other_errors_are_the_brokers():
    told = str(failed_to_read(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), "prices", 3, 17))
    assert "no longer" not in told
    assert "look at the broker" in told
