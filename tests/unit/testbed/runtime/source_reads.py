"""What the sources of a job read from beginning to end."""

from testbed.operators import Source
from testbed.runtime.slot.inputs import feeds


def reads_of(job):
    """Each source with all that it reads, batch by batch."""
    found, feed_of = [], feeds(job)
    for layout in (each for each in job.layout().partitions if isinstance(each.element, Source)):
        feed, position, ended, batches = feed_of(layout), 0, False, []
        while not ended:
            batch, position, ended, _ = feed.read(position)
            batches += [] if batch is None else [batch]
        found.append((layout, batches))
    return found
