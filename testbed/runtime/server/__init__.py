"""The coordinator's side: `server` lets slots come and go, carries out orders, and reads reports.

A `guest` is a connected slot; `validation` checks that its messages fit the dataflow. `milestones` has the progress of
partitions, `source_ends` where sources stop, `measured_costs` the costs of partitions. `following_load` moves copies to
where the load is. `record_keeper` writes the record that outlives the driver, `garbage_collection` deletes objects.
`run_events`, `cost_reports`, `store_watch`, `missing_input` and `waiting_queries` write the journal. `fallback` chooses
what a job falls back to.
"""
