"""Partitions that work batch by batch: a number names the same content in every run.

`cutting` cuts a source's input by the time in its records, and a border follows each batch. `intake` runs a batch when
its border has come on every input, one input after the other. So (channel, number) identifies content, independent of
threads, delays and failures. Therefore a partition can roll back alone: its neighbours repeat their output from
`retained`, and recognize repeated batches by their numbers. A partition may have a copy elsewhere: `copy_links` sends
to it what its primary gets, `muted` holds back its output. `tentative` continues without the input of lost partitions,
`publications` tracks what was published. `partition` joins the parts. The other modules are those of `core.partition`,
for batches.
"""
