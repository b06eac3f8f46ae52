"""Clusters: drivers that create, inspect and destroy hosts, and what hosts need to run: a JVM, jars, Spark, Kafka.

May import `experiments`; knows nothing of Airflow, faults, workloads or results.
"""
