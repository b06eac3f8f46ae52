"""The services of a cluster: Kafka and Spark, with their JVM and jars.

`startup` lays a cluster out and starts its services; `gateway` has those of the gateway, which it also restarts after a
fault. `supervisor` restarts a program whenever it ends.
"""
