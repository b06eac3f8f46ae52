"""What a run can execute: the spec of each workload, and the union of them all. `base` has what they share."""

from __future__ import annotations

import math
import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from experiments.documents.field_types import Spelling
from experiments.documents.parsing import Misfit, Spec, user_path
from experiments.errors import LEFT_OUT
from experiments.secrets import INSTEAD, secret_argument, secret_setting
from experiments.wording import elided
from experiments.workloads.base import OUTPUT, Slide, Windowed, WindowLength, Workload, WorkloadName
from experiments.workloads.cec_prices import CecPricesSpec
from experiments.workloads.hashtags import HashtagsSpec
from experiments.workloads.ppa_queries import IncidentsSpec, Top100Spec
from experiments.workloads.window_tree import WindowTreeSpec

HotShare = Annotated[float, Field(ge=0, le=1)]


class WordCountSpec(Windowed):
    """The word count: words counted in sliding event-time windows, then regrouped by ever shorter prefixes.

    At depth 0 there is no window and no state: every record yields the words of its own passage.
    """

    name: Literal[WorkloadName.WORDCOUNT] = WorkloadName.WORDCOUNT
    depth: Annotated[
        int, Field(ge=0, le=8, description="number of stateful operators in the chain; 0: each record gives its words")
    ] = 1
    window_s: WindowLength = 30.0
    slide_s: Slide = 5.0
    corpus: Annotated[
        str | None,
        Field(
            min_length=1,
            description="file or folder of text; by default the docs and sources of installed packages",
        ),
    ] = None
    corpus_mb: Annotated[float, Field(gt=0, le=1024, description="how much of the text is used [MB]")] = 4.0

    @property
    def by_record(self) -> bool:
        return self.depth == 0


class NexmarkQuery(StrEnum):
    """The queries of NexMark; docs/reference/nexmark.md says what differs from the suite."""

    Q0 = "q0"
    Q1 = "q1"
    Q2 = "q2"
    Q3 = "q3"
    Q4 = "q4"
    Q5 = "q5"
    Q6 = "q6"
    Q7 = "q7"
    Q8 = "q8"
    Q9 = "q9"
    Q10 = "q10"
    Q11 = "q11"
    Q12 = "q12"
    Q13 = "q13"
    Q14 = "q14"
    Q15 = "q15"
    Q16 = "q16"
    Q17 = "q17"
    Q18 = "q18"
    Q19 = "q19"
    Q20 = "q20"
    Q21 = "q21"
    Q22 = "q22"


_Q = NexmarkQuery
STATELESS = frozenset({_Q.Q0, _Q.Q1, _Q.Q2, _Q.Q10, _Q.Q13, _Q.Q14, _Q.Q21, _Q.Q22})
JOINS = frozenset({_Q.Q3, _Q.Q8, _Q.Q20})
TESTBED = frozenset({_Q.Q1, _Q.Q3, _Q.Q8, _Q.Q12})  # which the protocol testbed has
AVERAGES = frozenset({_Q.Q4, _Q.Q6})  # of winning bids: one stateful operator more than those of Q9
CHAINED = frozenset({_Q.Q5, _Q.Q7, _Q.Q9, _Q.Q15, _Q.Q16}) | AVERAGES  # two stateful operators in a row, or three


class NexmarkSpec(Windowed):
    """NexMark: one query over the persons, auctions and bids of an auction house."""

    name: Literal[WorkloadName.NEXMARK] = WorkloadName.NEXMARK
    query: Annotated[NexmarkQuery, Field(description="nexmark: which query")] = NexmarkQuery.Q1
    window_s: WindowLength = 10.0
    slide_s: Slide = 2.0
    hot_auctions: Annotated[HotShare, Field(description="nexmark: share of bids for the hot auction")] = 0.5
    hot_bidders: Annotated[HotShare, Field(description="nexmark: share of bids by the hot bidder")] = 0.75
    hot_sellers: Annotated[HotShare, Field(description="nexmark: share of auctions by the hot seller")] = 0.75
    stream_seed: Annotated[int, Field(ge=0, lt=2**63, description="nexmark: seed of the events")] = 1

    @property
    def title(self) -> str:
        return f"{self.name.value} {self.query.value}"

    @property
    def depth(self) -> int:
        """Stateful operators in a row: none, one, two for the queries of `CHAINED`, three for those of `AVERAGES`."""
        return 0 if self.query in STATELESS else 1 + (self.query in CHAINED) + (self.query in AVERAGES)

    @property
    def by_record(self) -> bool:
        return self.query in STATELESS | JOINS

    @property
    def settling_ms(self) -> int:
        """Where bids win, a window: the join holds the watermark back by the longest time that an auction is open."""
        return self.window_ms if self.query in AVERAGES | {NexmarkQuery.Q9} else 0


STEADY_GROUP = 1600  # blocks of 20 events
STEADY_LINKS = (10 + 8) * STEADY_GROUP  # 10 a block of the first group, never deleted, and 8 a block of each other
MOST_LINKS = 0.8  # per node; at about one the number of paths explodes


class ReachabilitySpec(Workload):
    """The cyclic query of `checkmate`, for the protocol testbed, which alone knows cycles: paths in a changing graph.

    Its results are changes to one answer, so that all of them together are one result without a window.
    """

    name: Literal[WorkloadName.REACHABILITY] = WorkloadName.REACHABILITY
    nodes: Annotated[int, Field(ge=2, le=2**31, description="reachability: how many nodes the graph has")] = 1_000_000
    steady: Annotated[
        bool,
        Field(
            description="reachability: whether to delete as many links and sources as are created, so that the graph"
            " does not grow"
        ),
    ] = False
    stream_seed: Annotated[int, Field(ge=0, lt=2**63, description="reachability: seed of the events")] = 1

    @property
    def output_topic(self) -> str:
        """The topic to which the query writes the changes of its answer."""
        return OUTPUT

    @property
    def depth(self) -> int:
        """One stateful operator: the join on the cycle."""
        return 1

    def fewest_nodes(self, events: float, ahead: float) -> int:
        """How many nodes keep the graph sparse after these events, with one partition read `ahead` of another."""
        links = STEADY_LINKS + 0.8 * ahead if self.steady else 0.4 * events
        return math.ceil(links / MOST_LINKS)


def _named(document: Any) -> Any:
    """A document without a name is the word count."""
    if not isinstance(document, dict):
        return document
    named = {"name": WorkloadName.WORDCOUNT, **document}
    if named["name"] not in list(WorkloadName):
        raise Misfit("name", named["name"], " or ".join(repr(name.value) for name in WorkloadName))
    return named


def _form(workload: Any) -> str | None:
    """The tag of a workload's spec, in the form that `parsing` leaves out of the names of fields."""
    name = workload.get("name") if isinstance(workload, dict) else getattr(workload, "name", None)
    return name and f"<{name}>"


TaggedSpec: TypeAlias = (
    Annotated[WordCountSpec, Tag("<wordcount>")]
    | Annotated[NexmarkSpec, Tag("<nexmark>")]
    | Annotated[ReachabilitySpec, Tag("<reachability>")]
    | Annotated[WindowTreeSpec, Tag("<window-tree>")]
    | Annotated[Top100Spec, Tag("<top-100>")]
    | Annotated[IncidentsSpec, Tag("<incidents>")]
    | Annotated[HashtagsSpec, Tag("<hashtags>")]
    | Annotated[CecPricesSpec, Tag("<cec-prices>")]
)
GeneratedSpec: TypeAlias = Annotated[TaggedSpec, Discriminator(_form), BeforeValidator(_named)]
Topic = Annotated[
    str, Spelling(r"^[A-Za-z0-9._-]{1,249}$", "a topic: 1 to 249 letters, digits, dots, underscores and hyphens")
]
PLACEHOLDERS = (
    "bootstrap_servers",
    "kafka_credentials",
    "input_topic",
    "output_topic",
    "checkpoint_dir",
    "checkpoint_interval_s",
)


class InputSpec(Spec):
    """Where the records of an input topic of an own job come from: exactly one of the three.

    Records are sent in their order, and from the beginning again when there are no more.
    """

    file: Annotated[
        str | None,
        Field(
            min_length=1,
            description="text file with one record per line; or Parquet file with the columns value and (optional) key",
        ),
    ] = None
    replay: Annotated[
        Annotated[str, Spelling(r"^[^/\s]+:\d+/[A-Za-z0-9._-]+$", "HOST:PORT/TOPIC")] | None,
        Field(description="HOST:PORT/TOPIC: the records that this topic holds when the run begins (at most a million)"),
    ] = None
    workload: Annotated[GeneratedSpec | None, Field(description="a workload: its generator makes the records")] = None

    @model_validator(mode="after")
    def _one_source(self) -> InputSpec:
        if sum(source is not None for source in (self.file, self.replay, self.workload)) != 1:
            raise Misfit("", self.model_dump(mode="json", exclude_none=True), "one of file, replay and workload")
        return self


class OwnJobSpec(Workload):
    """A PySpark streaming program of the user's own, run as it is: docs/guides/own-jobs.md.

    In `arguments` each of `PLACEHOLDERS` in braces is filled in. `conf` is what would be `--conf` of spark-submit.
    Neither may carry a secret (`experiments.secrets`).
    """

    name: Literal[WorkloadName.OWN_JOB] = WorkloadName.OWN_JOB
    program: Annotated[str, Field(min_length=1, description="own-job: the PySpark program")]
    arguments: Annotated[tuple[str, ...], Field(description="own-job: arguments of the program")] = ()
    modules: Annotated[
        tuple[str, ...], Field(description="own-job: files and folders that the program imports or reads")
    ] = ()
    conf: dict[str, str] = Field({}, description="own-job: further settings of spark-submit")
    inputs: Annotated[dict[Topic, InputSpec], Field(min_length=1, description="own-job: source of each input topic")]
    output_topic: Annotated[
        Topic | None, Field(description="own-job: the topic that the program writes to, if any")
    ] = None
    oracle: Annotated[
        str | None, Field(min_length=1, description="own-job: Python file with the functions `exact` and `results`")
    ] = None

    @property
    def title(self) -> str:
        return f"own job {self.program_words}"

    @property
    def program_words(self) -> str:
        """The program with its folder, which tell own jobs apart for people."""
        return f"{Path(self.program).absolute().parent.name}/{Path(self.program).name}"

    @property
    def input_topics(self) -> tuple[str, ...]:
        return tuple(self.inputs)

    @property
    def depth(self) -> None:
        """None: it is not known which state the program keeps."""
        return None

    @property
    def has_oracle(self) -> bool:
        return self.oracle is not None

    @field_validator("conf", mode="before")
    @classmethod
    def _no_setting_is_a_secret(cls, conf: Any) -> Any:
        """Before all else, so that a secret of the wrong type is told to be a secret."""
        if isinstance(conf, dict):
            name = secret_setting({str(name): str(value) for name, value in conf.items()})
            if name is not None:
                raise Misfit(name, conf, INSTEAD)
        return conf

    @field_validator("arguments", mode="before")
    @classmethod
    def _no_argument_is_a_secret(cls, arguments: Any) -> Any:
        if isinstance(arguments, list | tuple):
            index = secret_argument(list(map(str, arguments)))
            if index is not None:
                raise Misfit(str(index), arguments, INSTEAD)
        return arguments

    @model_validator(mode="after")
    def _placeholders_are_known(self) -> OwnJobSpec:
        for index, argument in enumerate(self.arguments):
            for name in re.findall(r"\{([a-z_]+)\}", argument):
                if name not in PLACEHOLDERS:
                    known = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
                    allowed = f"only these placeholders, not {{{elided(name)}}}: {known}"
                    raise Misfit(f"arguments.{index}", argument, allowed)
                if name == "output_topic" and self.output_topic is None:
                    raise Misfit("output_topic", LEFT_OUT, "a topic: an argument asks for it")
        return self

    @model_validator(mode="after")
    def _topics_differ(self) -> OwnJobSpec:
        if self.output_topic in self.inputs:
            raise Misfit("output_topic", self.output_topic, "a topic that is not in inputs")
        if self.oracle and self.output_topic is None:
            raise Misfit("output_topic", LEFT_OUT, "a topic: the oracle's results are compared with what it holds")
        return self


WorkloadSpec: TypeAlias = Annotated[
    TaggedSpec | Annotated[OwnJobSpec, Tag("<own-job>")], Discriminator(_form), BeforeValidator(_named)
]


def with_absolute_paths(workload: WorkloadSpec) -> WorkloadSpec:
    """The spec with its paths made absolute: its run may be driven from another directory."""
    if isinstance(workload, WordCountSpec) and workload.corpus:
        return workload.model_copy(update={"corpus": _absolute(workload.corpus)})
    if not isinstance(workload, OwnJobSpec):
        return workload
    inputs = {topic: _with_absolute_path(source) for topic, source in workload.inputs.items()}
    modules, program = tuple(map(_absolute, workload.modules)), _absolute(workload.program)
    oracle = _absolute(workload.oracle) if workload.oracle else None
    return workload.model_copy(update={"program": program, "modules": modules, "inputs": inputs, "oracle": oracle})


def _with_absolute_path(source: InputSpec) -> InputSpec:
    if source.workload:
        return source.model_copy(update={"workload": with_absolute_paths(source.workload)})
    return source.model_copy(update={"file": _absolute(source.file)}) if source.file else source


def _absolute(path: str) -> str:
    return str(user_path(path).absolute())
