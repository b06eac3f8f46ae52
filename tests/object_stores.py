"""S3 as moto plays it: a server in a thread of this process, and what finds it there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Thread

import boto3
import botocore.session
import pytest
from botocore.loaders import create_loader
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

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
    """The endpoint of a server that has the bucket `BUCKET`, with credentials for it in the environment.

    It is made in this thread: moto's own `ThreadedMotoServer` makes it in the new one, and if that fails, as when no
    port is free, its `start` waits for ever.
    """
    application = DomainDispatcherApplication(create_backend_app)
    server = make_server(HERE, 0, application, threaded=True, request_handler=MotoRequestHandler)
    serving = Thread(target=server.serve_forever, daemon=True)
    serving.start()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.setattr(botocore.session, "create_loader", LOADER)
        try:
            endpoint = f"http://{HERE}:{server.server_port}"
            boto3.client("s3", "us-east-1", endpoint_url=endpoint).create_bucket(Bucket=BUCKET)
            yield endpoint
        finally:
            server.shutdown()
            serving.join()
            server.server_close()
