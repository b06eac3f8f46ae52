"""Replication plans: which tasks to replicate actively, so that tentative output keeps the most fidelity.

Source: Su, Zhou, "Tolerating Correlated Failures in Massively Parallel Stream Processing Engines" (`ppa`).
Every planner is a function from a topology and a budget to a `ReplicationPlan`.
"""
