"""The secrets of a run, as files and as each library takes them."""

import stat
from dataclasses import asdict
from pathlib import Path

from infra import credentials
from infra.broker import Broker, client_properties


def test_only_their_owner_can_read_the_secrets(tmp_path: Path) -> None:
    credentials.make(tmp_path)
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in credentials.folder(tmp_path).iterdir()}
    assert found == {"spark-defaults.conf": 0o600, "kafka.properties": 0o600, "store.key": 0o600}
    assert stat.S_IMODE(credentials.folder(tmp_path).stat().st_mode) == 0o700


def test_two_runs_share_no_secret_and_one_keeps_its_own(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for root in (one, other):
        root.mkdir()
        credentials.make(root)
    names = "spark-defaults.conf", "kafka.properties", "store.key"
    files = [credentials.folder(root) / name for root in (one, other) for name in names]
    before = [path.read_text() for path in files]
    assert len(set(before)) == 6
    credentials.make(one)
    assert [path.read_text() for path in files] == before


def test_secrets_that_were_half_made_when_their_maker_died_are_made_again(tmp_path: Path) -> None:
    half = tmp_path / ".secrets"
    half.mkdir()
    (half / "spark-defaults.conf").write_text("spark.authenticate false\n")
    credentials.make(tmp_path)
    assert "spark.authenticate true" in (credentials.folder(tmp_path) / "spark-defaults.conf").read_text().splitlines()
    assert not half.exists()


def test_a_file_is_its_owners_alone_even_where_a_link_waits_for_it(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("another's")
    link = tmp_path / "server.properties"
    link.symlink_to(elsewhere)
    credentials.write_private(link, "secret")
    assert (elsewhere.read_text(), link.read_text(), link.is_symlink()) == ("another's", "secret", False)
    assert stat.S_IMODE(link.stat().st_mode) == 0o600


def test_every_library_gets_the_same_credentials(tmp_path: Path) -> None:
    file = tmp_path / "kafka.properties"
    file.write_text(client_properties("well kept"))
    broker = Broker("127.0.9.1:9092", str(file))
    assert broker.for_librdkafka() == {
        "bootstrap.servers": "127.0.9.1:9092",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "aftershock",
        "sasl.password": "well kept",
    }
    assert broker.for_kafka_python() == {
        "bootstrap_servers": "127.0.9.1:9092",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "aftershock",
        "sasl_plain_password": "well kept",
    }
    login = (
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="aftershock" password="well kept";'
    )
    assert broker.for_spark() == {
        "kafka.bootstrap.servers": "127.0.9.1:9092",
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": login,
    }


def test_a_password_with_quotes_and_backslashes_is_the_same_for_java(tmp_path: Path) -> None:
    """As another cluster's may be: Java reads what stands between quotes as a literal of its own language."""
    file = tmp_path / "kafka.properties"
    file.write_text(client_properties(r'a"b\c"'))
    broker = Broker("127.0.9.1:9092", str(file))
    assert broker.for_librdkafka()["sasl.password"] == r'a"b\c"'
    assert broker.java_login().endswith(r'username="aftershock" password="a\"b\\c\"";')


def test_a_broker_passes_on_without_its_secret(tmp_path: Path) -> None:
    file = tmp_path / "kafka.properties"
    file.write_text(client_properties("well kept"))
    broker = Broker("127.0.9.1:9092", str(file))
    broker.for_spark()
    assert "well kept" not in str(asdict(broker)) + repr(broker) + str(vars(broker))
    assert Broker(**asdict(broker)) == broker


def test_a_broker_that_asks_for_nothing_gets_nothing() -> None:
    broker = Broker("kafka.example.com:9092")
    assert broker.for_librdkafka() == {"bootstrap.servers": "kafka.example.com:9092"}
    assert broker.for_kafka_python() == {"bootstrap_servers": "kafka.example.com:9092"}
    assert broker.for_spark() == {"kafka.bootstrap.servers": "kafka.example.com:9092"}


def test_spark_asks_for_the_secret_and_takes_neither_programs_nor_kills_over_http(tmp_path: Path) -> None:
    credentials.make(tmp_path)
    lines = (credentials.folder(tmp_path) / "spark-defaults.conf").read_text().splitlines()
    settings = dict(line.split(" ", 1) for line in lines)
    assert settings["spark.authenticate"] == "true"
    assert settings["spark.master.rest.enabled"] == "false"
    assert settings["spark.ui.killEnabled"] == "false"
    assert settings["spark.master.ui.decommission.allow.mode"] == "DENY"
    assert f"spark.{settings['spark.ui.filters']}.param.secretKey" in settings
    assert settings["spark.python.daemon.module"] == "aftershock_guard"
