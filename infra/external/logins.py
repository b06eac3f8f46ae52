"""The run's logins to an existing cluster: copies of the user's files that only the run's user can read."""

from __future__ import annotations

import re
from pathlib import Path

from experiments.documents import gate
from experiments.errors import BadInput, EnvironmentFailure
from infra.broker import MECHANISM, settings_of
from infra.services import kafka

SETTINGS = {"security.protocol", "sasl.mechanism", "sasl.username", "sasl.password"}
SET_BY_THE_RUN, PACKAGES = {"spark.jars", "spark.driver.extraClassPath"}, "spark.jars.packages"
SETTING = re.compile(r"[\s=:]")  # what may follow a name, in a file of Java properties
PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL")
FORM = f"a file of the lines {', '.join(f'{name}=...' for name in sorted(SETTINGS))}, with mechanism {MECHANISM}"


def broker_login(path: Path | None) -> str:
    """The login of a broker's clients, as `infra.broker` reads it; empty for a broker that asks for none.

    Raises `BadInput` for a file that is none; what is in it is not told.
    """
    if path is None:
        return ""
    lines = [line.strip() for line in _text("broker_login", path).splitlines() if line.strip()]
    found = {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines)}
    fits = found.keys() == SETTINGS and len(lines) == len(SETTINGS) and all(found.values())
    if not fits or found["security.protocol"] not in PROTOCOLS or found["sasl.mechanism"] != MECHANISM:
        raise BadInput("broker_login", str(path), f"{FORM} and protocol {' or '.join(PROTOCOLS)}")
    return "".join(f"{name}={value}\n" for name, value in found.items())


def spark_conf(path: Path | None) -> str:
    """Spark's settings for this cluster, in the form of its spark-defaults.conf.

    Raises `BadInput` without the file, and for a setting that a run would replace, since its jars would be missing.
    """
    text = "" if path is None else _text("spark_conf", path).rstrip() + "\n"
    for line in text.splitlines():
        name = SETTING.split(line.strip(), maxsplit=1)[0]
        if name in SET_BY_THE_RUN:
            raise BadInput("spark_conf", name, f"no setting {name}, which a run sets; name jars in {PACKAGES}")
    return text


def require_broker(brokers: str, login: str, limit_s: float) -> None:
    """Raise `EnvironmentFailure` unless a broker answers within `limit_s` [s], and takes the login if there is one.

    No file is written: a killed check would leave the password in it.
    """
    if not kafka.is_ready({"bootstrap.servers": brokers, **settings_of(login)}, limit_s):
        raise EnvironmentFailure(f"no broker answers at {brokers}", "start it, or correct its address")


def _text(field: str, path: Path) -> str:
    try:
        return gate.read_text(path, gate.YAML)
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or "no text"
        raise BadInput(field, str(path), f"a file that can be read ({why})") from None
