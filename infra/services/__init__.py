"""What runs on the hosts of a cluster: Kafka, Spark, their JVM and jars; how they start, stay up and are sampled."""
