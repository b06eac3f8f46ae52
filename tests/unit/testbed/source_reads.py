"""What the sources of a job read from beginning to end."""

from testbed.operators import Source
from testbed.runtime.inputs import feed_of


def reads_of(job):
    """Each source with all that it reads, batch by batch."""
    found = []
    for layout in (each for each in job.layout().partitions if isinstance(each.element, Source)):
        feed, position, ended, batches = feed_of(job, layout), 0, False, []
        while not ended:
            batch, position, ended = feed.read(position)
            batches += [] if batch is None else [batch]
        found.append((layout, batches))
    return found
