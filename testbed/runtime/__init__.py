"""The dataflow testbed for real: what carries out the effects of partitions and coordinator in the world.

    slot/        what a Spark task does for as long as the run lasts: it keeps its partitions at work
    server/      the coordinator's side, in the program that Spark runs as driver
    network/     connections between slots, and to the server: who gets in, and what is said
    connectors/  where records come from and go: sources, sinks, Kafka

`job` says what to run. `background` is a thread for what would hold up a slot or the server; `stillness` tells when a
dataflow with a cycle has come to its end.

Nothing here imports Spark: the program that Spark runs is `spark_jobs/testbed`.
"""
