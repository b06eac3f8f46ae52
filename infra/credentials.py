"""The secrets of one run: for its Spark processes, for the clients of its broker, and the key of the store.

They are made with the cluster, known only to the user who started the run, and deleted with the cluster's root.

    ROOT/secrets/spark-defaults.conf   what every Spark process of the run reads (its SPARK_CONF_DIR)
    ROOT/secrets/kafka.properties      what a client of the broker says (`infra.broker`)
    ROOT/secrets/store.key             what the testbed seals its checkpoints with, in every driver of the run
"""

from __future__ import annotations

import base64
import os
import secrets
from pathlib import Path

from infra.broker import client_properties
from infra.launch import DAEMON

FOLDER = "secrets"
SPARK_FILE, KAFKA_FILE, STORE_KEY_FILE = "spark-defaults.conf", "kafka.properties", "store.key"
KEY_BYTES = 32
PAGE_FILTER = "org.apache.spark.ui.JWSFilter"  # answers 403 to requests without a token that is signed with its key
# Executors authenticate with the same secret, which Spark passes to them in their environment. Programs can neither be
# submitted nor killed over HTTP.
SPARK = {
    "spark.authenticate": "true",
    "spark.master.rest.enabled": "false",
    "spark.ui.killEnabled": "false",
    "spark.master.ui.decommission.allow.mode": "DENY",
    "spark.ui.filters": PAGE_FILTER,
    "spark.python.daemon.module": DAEMON,
}


def folder(root: str | Path) -> Path:
    """Where the secrets of the cluster with that root are."""
    return Path(root) / FOLDER


def kafka_file(root: str | Path) -> Path:
    """The credentials of the broker's clients."""
    return folder(root) / KAFKA_FILE


def store_key_file(root: str | Path) -> Path:
    """The key of the testbed's checkpoints, in hexadecimal digits."""
    return folder(root) / STORE_KEY_FILE


def make(root: str | Path) -> None:
    """Make the secrets of a cluster, unless it has them."""
    own = {
        "spark.authenticate.secret": secrets.token_hex(KEY_BYTES),
        f"spark.{PAGE_FILTER}.param.secretKey": base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode(),
    }
    settings = "".join(f"{name} {value}\n" for name, value in (SPARK | own).items())
    adopt(root, spark=settings, kafka=client_properties(secrets.token_hex(KEY_BYTES)))


def adopt(root: str | Path, *, spark: str, kafka: str) -> None:
    """Let a cluster use these texts, unless it has secrets already: Spark's settings and the broker's login.

    Both may be empty, for a cluster without authentication. The key of the checkpoints is the run's own.
    """
    place = folder(root)
    if place.exists():
        return
    scratch = place.with_name(f".{FOLDER}")
    scratch.mkdir(mode=0o700, exist_ok=True)
    write_private(scratch / SPARK_FILE, spark)
    write_private(scratch / KAFKA_FILE, kafka)
    write_private(scratch / STORE_KEY_FILE, secrets.token_hex(KEY_BYTES))
    scratch.rename(place)


def write_private(path: Path, text: str) -> None:
    """Write a file as a whole: only its owner can read it, from the first byte on, and nobody sees a part of it."""
    scratch = path.with_name(f".{path.name}")
    scratch.unlink(missing_ok=True)
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    scratch.replace(path)
