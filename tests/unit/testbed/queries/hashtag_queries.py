"""Small dataflows over hashtags, their input, and their exact output by the definition, hashtag by hashtag."""

from collections import Counter, defaultdict

from experiments.workloads.hashtags import WINDOW, HashtagsSpec
from testbed.core.dataflow.chaining import chained
from testbed.core.dataflow.layout import lay_out
from testbed.operators import Delivery
from testbed.queries.hashtags import hashtags
from workloads.hashtags.input import TOTALS, tweets
from workloads.schedule import Schedule

FIFTEEN = HashtagsSpec(window_s=4.0, hashtags=20, stream_seed=3)
TWO = HashtagsSpec(topology="two-windows", window_s=3.0, hashtags=20, stream_seed=3)


def inputs(spec, events, rate, read, sources=1, start_ns=0):
    """Position p goes to partition p mod P, as in Kafka; each partition reads a fixed number at once."""
    made = tweets(spec, Schedule(start_ns, rate), 0, events)
    rows = [made.take(list(range(each, events, sources))) for each in range(sources)]
    return {"tweets": [[each.slice(at, read) for at in range(0, each.num_rows, read)] for each in rows]}


def laid_out(spec, parallelism=1, delivery=Delivery.EXACTLY_ONCE):
    """As it runs: the source does what the parser would do."""
    return lay_out(chained(hashtags(spec, parallelism, delivery)))


def exact(spec, given):
    """The rows that must come out for what the partitions of the source have read."""
    slide_ns, found = spec.slide_ms * 10**6, Counter()
    tags = [
        (at_ns // slide_ns, word.removeprefix("#"))
        for batches in given["tweets"]
        for batch in batches
        for at_ns, text in zip(batch["at_ns"].to_pylist(), batch["text"].to_pylist(), strict=True)
        for word in text.split()
    ]
    queries = []
    for query, read in enumerate(spec.reads):
        rows = _counted(spec, query, tags) if read == WINDOW else _totalled([queries[each] for each in read])
        queries.append(rows)
        found.update((tag, (slide + 1) * slide_ns - 1, count, query) for (slide, tag), count in rows.items())
    return found


def _counted(spec, query, tags):
    slides = spec.window_of(query) // spec.slide_ms
    return Counter((slide + later, tag) for slide, tag in tags for later in range(slides))


def _totalled(given):
    totals, rows = defaultdict(int), {}
    arrived = sum(map(Counter, given), Counter())
    touched = {at for rows_of in given for at in rows_of}
    for slide, tag in sorted(touched):
        totals[tag] = (totals[tag] + arrived[slide, tag]) % TOTALS
        rows[slide, tag] = totals[tag]
    return rows
