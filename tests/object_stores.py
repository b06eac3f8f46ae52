"""S3 as moto plays it: a server in a thread of this process, and what finds it there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import boto3
import botocore.session
import pytest
from botocore.loaders import create_loader
from moto.server import ThreadedMotoServer

BUCKET, HERE = "checkpoints", "127.0.0.1"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
}
# Every store has a session of its own, and each would read the description of S3 again: .1 s of CPU time.
LOADER = cache(create_loader)


@contextmanager
def s3_server() -> Iterator[str]:
    """The endpoint of a server that has the bucket `BUCKET`, with credentials for it in the environment."""
    server = ThreadedMotoServer(HERE, 0, verbose=False)
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.setattr(botocore.session, "create_loader", LOADER)
        try:
            endpoint = "http://{}:{}".format(*server.get_host_and_port())
            boto3.client("s3", "us-east-1", endpoint_url=endpoint).create_bucket(Bucket=BUCKET)
            yield endpoint
        finally:
            server.stop()
