"""A small job and small batches, for tests of what the runtime is made of."""

import pyarrow as pa

from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from testbed.operators import Delivery
from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec

HERE = "127.0.0.1"
JOB = Job(
    run_id="unit",
    workload=NexmarkSpec(query=NexmarkQuery.Q1),
    protocol="coordinated",
    slots=2,
    parallelism=3,
    input=JobInput(InputKind.GENERATED, 10_001, rate=5000.0),
    output=OutputSpec(OutputKind.FILES, Delivery.EXACTLY_ONCE, "output"),
    store="store",
)
NUMBERS = pa.schema([("number", pa.int64())])


def rows(*numbers):
    return pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64())], schema=NUMBERS)


def batch_of(schema, *tuples):
    """Rows, each given as a tuple."""
    return pa.RecordBatch.from_pylist([dict(zip(schema.names, each, strict=True)) for each in tuples], schema=schema)


def partition_named(job, name):
    return next(each for each in job.layout().partitions if each.name == name)


def tuples_in(batch):
    """The rows of a batch, each as a tuple; none if there is no batch."""
    return [] if batch is None else list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
