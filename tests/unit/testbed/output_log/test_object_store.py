"""A log whose segments are in S3: crashes, damage and refusals are as with any other store."""

from uuid import uuid4

import boto3
import pytest

from experiments.errors import AftershockError, EnvironmentFailure
from testbed.output_log.policies import Targets
from testbed.output_log.reading import LogReader
from testbed.stores.s3 import S3Store
from tests.object_stores import BUCKET
from tests.unit.testbed.output_log.crashes import NAME, Run, without_faults
from tests.unit.testbed.output_log.inputs import CASES, PRICES, Records
from tests.unit.testbed.output_log.test_damage import newest

CASE = CASES["windows of 3 records"]
POLICY = Targets(extent=8, replay=15)


class Bucket:
    """A prefix of its own in the bucket, and its objects as they lie there."""

    def __init__(self, endpoint):
        self._prefix = f"runs/{uuid4().hex}"
        self.store = S3Store(f"s3://{BUCKET}/{self._prefix}", endpoint, patience_s=0.0)
        self._client = boto3.client("s3", "us-east-1", endpoint_url=endpoint)

    def tear(self, store, random):
        """The last segment was written in part."""
        if found := newest(store):
            key = f"{self._prefix}/{NAME}/segment-{found.number}-{found.life}"
            data = self._client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
            self._client.put_object(Bucket=BUCKET, Key=key, Body=data[: random.randrange(len(data))])


def test_crashes_cost_no_result(endpoint):
    for seed in range(2):
        run = Run(CASE, POLICY, seed, [14 + seed, 9, 5], store=Bucket(endpoint).store)
        assert run.run() == without_faults(CASE, CASE.events(seed))
        assert any(found.windows for found in run.found)


def test_behind_a_torn_segment_the_state_before_is_restored(endpoint):
    older = 0
    for seed in range(2):
        bucket = Bucket(endpoint)
        run = Run(CASE, POLICY, seed, [20 + seed], store=bucket.store, damage=bucket.tear)
        assert run.run() == without_faults(CASE, CASE.events(seed))
        older += any(found.damaged for found in run.found)
    assert older


def test_a_log_that_is_trimmed_leaves_no_more_in_the_bucket_than_it_knows(endpoint):
    store = Bucket(endpoint).store
    run = Run(CASE, Targets(extent=1, replay=1), 1, [], store=store)
    run._begin()
    for event in run._pending:
        run._take(event)
        run.logged.check(lambda: True)
        run.logged.commit()
        run.logged.log.trim(run.logged.log.results)
    assert run.logged.log.segments == len(store.keys()) < 10
    assert LogReader(store, NAME, PRICES).newest == run.logged.log._last


def test_what_the_bucket_refuses_is_not_safe_and_nothing_of_it_is_lost(endpoint, monkeypatch):
    store = Bucket(endpoint).store
    run = Run(CASE, POLICY, 1, [], store=store)
    run._begin()
    for event in [each for each in run._pending if isinstance(each, Records)][:4]:
        run._take(event)
    with monkeypatch.context() as patch:
        patch.setattr(store, "_bucket", "no-such-bucket")
        with pytest.raises(EnvironmentFailure, match="can't be written"):
            run.logged.commit()
    assert (run.logged.log.results, store.keys()) == (0, [])
    assert run.logged.commit()
    assert len(store.keys()) == 1


def nothing_deleted(store, key):
    """The bucket keeps what is no longer needed."""


def cut_short(store, key, pieces, real=S3Store._write):
    real(store, key, [b"".join(pieces)[:-1]])


@pytest.mark.parametrize(
    ("name", "planted", "test"),
    [
        ("delete", nothing_deleted, test_a_log_that_is_trimmed_leaves_no_more_in_the_bucket_than_it_knows),
        ("_write", cut_short, test_crashes_cost_no_result),
    ],
    ids=["delete", "write"],
)
def test_a_planted_error_is_noticed(endpoint, monkeypatch, name, planted, test):
    monkeypatch.setattr(S3Store, name, planted)
    with pytest.raises((AssertionError, AftershockError)):
        test(endpoint)
