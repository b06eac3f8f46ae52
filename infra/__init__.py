"""Clusters: drivers that create, strike and destroy hosts, and what hosts need to run: a JVM, jars, Spark, Kafka.

`local`, `netns`, `docker`, `ssh` and `external` are the drivers; `remote` has the sessions and agents that `netns`,
`docker` and `ssh` share.
`services` is what runs on the hosts. `strikes` is what faults do to a host; `chaos` decides which faults, and when.
"""
