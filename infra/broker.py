"""How clients reach a Kafka broker: its address, and the credentials that it requires.

Every library has names of its own for the same four settings. Imports no client library: that takes a while.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MECHANISM, PROTOCOL = "PLAIN", "SASL_PLAINTEXT"
USER = "aftershock"
LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass(frozen=True)
class Broker:
    """A broker: HOST:PORT, of several with commas between, and the file with its clients' credentials (None: it asks
    for none).

    The file is read when a client is made, so a `Broker` can be kept and passed on as JSON without a secret in it.
    """

    address: str
    credentials: str | None = None

    def _settings(self) -> dict[str, str]:
        """What the file says, under librdkafka's names; empty without a file."""
        if self.credentials is None:
            return {}
        return settings_of(Path(self.credentials).read_text(encoding="utf-8"))

    def for_librdkafka(self) -> dict[str, str]:
        """Settings of a producer or consumer of `confluent_kafka`."""
        return {"bootstrap.servers": self.address, **self._settings()}

    def for_kafka_python(self) -> dict[str, str]:
        """Keyword arguments of a client of `kafka`."""
        names = {"security_protocol": "security.protocol", "sasl_mechanism": "sasl.mechanism"}
        names |= {"sasl_plain_username": "sasl.username", "sasl_plain_password": "sasl.password"}
        settings = self._settings()
        found = {ours: settings[theirs] for ours, theirs in names.items() if settings}
        return {"bootstrap_servers": self.address, **found}

    def for_spark(self) -> dict[str, str]:
        """Options of Spark's source and sink for Kafka."""
        return {"kafka.bootstrap.servers": self.address, **self.spark_credentials()}

    def spark_credentials(self) -> dict[str, str]:
        """Those of Spark's options that are about credentials; none for a broker that asks for none."""
        settings = self._settings()
        if not settings:
            return {}
        plain = {f"kafka.{name}": settings[name] for name in ("security.protocol", "sasl.mechanism")}
        return {**plain, "kafka.sasl.jaas.config": self.java_login()}

    def java_login(self) -> str:
        """The login of a Java client, as its setting `sasl.jaas.config` has it; only of a broker with credentials."""
        user, password = map(_escaped, self._user_and_password())
        return f'{LOGIN_MODULE} required username="{user}" password="{password}";'

    def server_login(self) -> str:
        """The same login in the broker's own configuration: the broker admits clients that show it."""
        return server_login(*self._user_and_password())

    def _user_and_password(self) -> tuple[str, str]:
        settings = self._settings()
        return settings["sasl.username"], settings["sasl.password"]


def settings_of(login: str) -> dict[str, str]:
    """The settings in the content of a file of credentials, under librdkafka's names."""
    return dict(line.partition("=")[::2] for line in login.splitlines())


def client_properties(password: str) -> str:
    """The content of a file of credentials: one setting a line, under librdkafka's names."""
    settings = {"security.protocol": PROTOCOL, "sasl.mechanism": MECHANISM}
    settings |= {"sasl.username": USER, "sasl.password": password}
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _escaped(text: str) -> str:
    """A text as it stands between the quotes of a login in Java."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def server_login(user: str, password: str) -> str:
    """Who a server in Java is to its peers, and whom it lets in: the same. Both are ours, of letters and digits."""
    return f'{LOGIN_MODULE} required username="{user}" password="{password}" user_{user}="{password}";'
