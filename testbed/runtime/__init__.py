"""The runtime of the testbed: carries out the effects of partitions and coordinator with sockets, threads and Kafka.

    slot/        a Spark task that lasts as long as the run and executes its partitions
    server/      the coordinator's side, in the program that Spark runs as driver
    network/     connections between slots and to the server: admission and messages
    connectors/  where records come from and go: sources, sinks, Kafka

`job` describes what to run. `background` is a thread for work that would delay a slot or the server. `stillness`
detects the end of a dataflow with a cycle.

Nothing here imports Spark: the program that Spark runs is `spark_jobs/testbed`.
"""
