"""The broker's settings and id, as Kafka reads them (no broker is started)."""

import base64
from pathlib import Path

from infra.broker import Broker, client_properties
from infra.services.kafka import cluster_id, properties


def test_a_cluster_id_is_a_uuid_that_no_option_parser_trips_over():
    ids = {cluster_id() for _ in range(5000)}
    assert len(ids) == 5000
    assert not any(found.startswith("-") for found in ids), "one random uuid in 64 would"
    assert {len(base64.urlsafe_b64decode(f"{found}==")) for found in ids} == {16}


def test_the_broker_listens_on_the_address_of_its_host_only(tmp_path: Path):
    credentials = tmp_path / "kafka.properties"
    credentials.write_text(client_properties("well kept"))
    written = properties(Broker("127.0.9.1:9092", str(credentials)), Path("/data"))
    settings = dict(line.split("=", 1) for line in written.splitlines())
    assert settings["listeners"] == "CLIENTS://127.0.9.1:9092,CONTROLLER://127.0.9.1:9093"
    assert settings["advertised.listeners"] == "CLIENTS://127.0.9.1:9092"
    assert settings["listener.security.protocol.map"] == "CLIENTS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
    assert settings["log.dirs"] == "/data"
    assert settings["auto.create.topics.enable"] == "false"
