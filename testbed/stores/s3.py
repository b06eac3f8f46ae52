"""Objects in S3 or a compatible store, below a prefix of a bucket.

Credentials and region are found as by every program of AWS: in the environment, a profile, or the machine's role; never
in an experiment. Every host that runs slots must have them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from experiments.errors import EnvironmentFailure
from experiments.waiting import retry
from testbed.core.seal import Piece
from testbed.stores.store import AGAIN_S, PATIENCE_S, ObjectStore, UnreadableObject

REGION = "us-east-1"  # of S3 itself only where none is configured; others ignore it
CALLING = Config(
    connect_timeout=3, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 3}, max_pool_connections=4
)
MOST_DELETED = 1000  # by one request
MISSING = {"NoSuchKey", "404"}
TAKEN, AT_ONCE = {"PreconditionFailed", "412"}, {"ConditionalRequestConflict", "409"}

T = TypeVar("T")


class WrittenAtOnce(EnvironmentFailure):
    """Two writers create an object at the same time: S3 tells one of them to retry."""


class S3Store(ObjectStore):
    """Objects at `s3://BUCKET/PREFIX`.

    A write that S3 has refused a few times fails: the next checkpoint makes up for it. A read for a recovery is retried
    until `patience_s` is over.
    """

    def __init__(
        self,
        place: str,
        endpoint: str | None = None,
        patience_s: float = PATIENCE_S,
        store_key: bytes | None = None,
    ) -> None:
        super().__init__(store_key)
        parts = urlsplit(place)
        self._place, self._bucket, prefix = place, parts.netloc, parts.path.strip("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._patience_s = patience_s
        session = boto3.session.Session()
        self._client = session.client(
            "s3", endpoint_url=endpoint, config=CALLING, region_name=session.region_name or REGION
        )

    def delete(self, key: str) -> None:
        self._ask(f"the object {key} can't be deleted", self._client.delete_object, Key=self._prefix + key)

    def _portions(self, keys: list[str]) -> list[list[str]]:
        return [keys[start : start + MOST_DELETED] for start in range(0, len(keys), MOST_DELETED)]

    def _delete_portion(self, keys: list[str]) -> None:
        objects = {"Objects": [{"Key": self._prefix + key} for key in keys], "Quiet": True}
        answer = self._ask(f"{len(keys)} objects can't be deleted", self._client.delete_objects, Delete=objects)
        if refused := answer.get("Errors"):
            first = refused[0]
            raise self._failure(f"{len(refused)} objects can't be deleted", f"{first['Key']}: {first['Code']}")

    def keys(self, folder: str = "") -> list[str]:
        prefix = f"{self._prefix}{folder}/" if folder else self._prefix

        def listed() -> list[str]:
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
            return [each["Key"] for page in pages for each in page.get("Contents", ())]

        return sorted(key.removeprefix(self._prefix) for key in self._tried("its objects can't be listed", listed))

    def _write(self, key: str, pieces: Iterable[Piece]) -> None:
        body = b"".join(pieces)  # it may have to be sent again
        self._ask(f"the object {key} can't be written", self._client.put_object, Key=self._prefix + key, Body=body)

    def _create(self, key: str, sealed: bytes) -> bool:
        created = partial(self._created, key, sealed)
        return retry(created, WrittenAtOnce, interval_s=AGAIN_S, limit_s=self._patience_s)

    def _created(self, key: str, sealed: bytes) -> bool:
        try:
            self._client.put_object(Bucket=self._bucket, Key=self._prefix + key, Body=sealed, IfNoneMatch="*")
        except (BotoCoreError, ClientError) as error:
            code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
            if code in TAKEN:
                return False
            if code in AT_ONCE:
                raise WrittenAtOnce(f"the object {key} can't be written: {error}", "try again") from error
            raise self._failure(f"the object {key} can't be written", str(error)) from error
        return True

    def _read(self, key: str) -> bytes:
        fetch = partial(self._tried, f"the object {key} can't be read", lambda: self._fetched(key))
        return retry(fetch, EnvironmentFailure, interval_s=AGAIN_S, limit_s=self._patience_s)

    def _fetched(self, key: str) -> bytes:
        try:
            found: bytes = self._client.get_object(Bucket=self._bucket, Key=self._prefix + key)["Body"].read()
            return found
        except ClientError as error:
            if error.response["Error"]["Code"] in MISSING:
                raise UnreadableObject(key, "it is not there") from error
            raise

    def _ask(self, refusal: str, call: Callable[..., Any], **what: Any) -> Any:
        return self._tried(refusal, lambda: call(Bucket=self._bucket, **what))

    def _tried(self, refusal: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except (BotoCoreError, ClientError) as error:
            raise self._failure(refusal, str(error)) from error

    def _failure(self, refusal: str, cause: str) -> EnvironmentFailure:
        return EnvironmentFailure(
            f"{refusal} at {self._place}: {' '.join(cause.split())}",
            "look at the object store, and at the credentials in this host's environment",
        )
