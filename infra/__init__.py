"""Clusters: drivers that create, inspect and destroy hosts, and what hosts need to run: a JVM, jars, Spark, Kafka.

`strikes` is what faults do to a host; which faults, and when, is the business of `chaos`. May import `experiments`;
knows nothing of Airflow, workloads or results.
"""
