"""The services of a cluster: Kafka, Spark, their JVM and jars; start-up, supervisor and sampler of resource usage."""
