"""Partitions that work batch by batch: what they send under a number is the same in every run.

`cutting` cuts a source's input by the time in its records, and a border follows each batch. `intake` runs a batch
when its border has come on every input, one input after the other. So (channel, number) names content whatever
threads, delays and failures do, and a partition can roll back alone: `retained` has what its neighbours send it again,
and they recognize by its number what it sends again. A partition may have a copy elsewhere: `copy_links` sends to it
what its primary gets, `muted` has the output that it does not let out. `tentative` goes on without the input of lost
partitions, `publications` knows what is out. `partition` joins the parts; the rest are the batch-wise kinds of the
parts of `core.partition`.
"""
