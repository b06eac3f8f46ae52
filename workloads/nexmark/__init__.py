"""NexMark: an auction house as three streams (persons, auctions, bids), and the suite's queries on them.

`stream` makes the events, `messages` their Kafka values, `queries` runs them.
"""
