"""The query and the oracle of each workload, by its spec. Workloads of the testbed alone have no query here."""

from __future__ import annotations

from types import ModuleType

from pyspark.sql import DataFrame

from experiments.workloads.base import WorkloadName
from experiments.workloads.catalogue import WorkloadSpec
from workloads.cec_prices import oracle as cec_prices_oracle
from workloads.hashtags import oracle as hashtags_oracle
from workloads.incidents import oracle as incidents_oracle
from workloads.nexmark import oracle as nexmark_oracle
from workloads.nexmark import queries as nexmark_queries
from workloads.reachability import oracle as reachability_oracle
from workloads.top_100 import oracle as top_100_oracle
from workloads.window_tree import oracle as window_tree_oracle
from workloads.wordcount import query as wordcount

QUERIES: dict[WorkloadName, ModuleType] = {WorkloadName.WORDCOUNT: wordcount, WorkloadName.NEXMARK: nexmark_queries}
ORACLES: dict[WorkloadName, ModuleType] = {
    WorkloadName.WORDCOUNT: wordcount,
    WorkloadName.NEXMARK: nexmark_oracle,
    WorkloadName.REACHABILITY: reachability_oracle,
    WorkloadName.WINDOW_TREE: window_tree_oracle,
    WorkloadName.TOP_100: top_100_oracle,
    WorkloadName.INCIDENTS: incidents_oracle,
    WorkloadName.HASHTAGS: hashtags_oracle,
    WorkloadName.CEC_PRICES: cec_prices_oracle,
}


def query(records: DataFrame, spec: WorkloadSpec) -> DataFrame:
    """The results of a workload as a streaming DataFrame, in the columns of `workloads.results`."""
    return QUERIES[spec.name].query(records, spec)


def oracle(records: DataFrame, spec: WorkloadSpec) -> DataFrame:
    """The exact results on the same records without faults, by other means, as a batch DataFrame."""
    return ORACLES[spec.name].oracle(records, spec)


def collected(written: DataFrame, spec: WorkloadSpec) -> DataFrame:
    """The results that a query has given, from the messages that it wrote: the same, unless those are changes."""
    return reachability_oracle.collected(written) if spec.name is WorkloadName.REACHABILITY else written
