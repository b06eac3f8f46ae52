"""The coordinator's side: `server` lets slots come and go, carries out orders, and reads reports.

A `guest` is a slot that has said hello; `validation` says whether its messages fit the dataflow. `milestones` has
how far partitions are, `source_ends` where sources stop, `measured_costs` what partitions cost, `following_load` has
copies made where the load is. `record_keeper` writes what outlives the driver, `garbage_collection` deletes.
`run_events`, `cost_reports`, `missing_input` and `waiting_queries` write the journal. `fallback` says what a job
falls back to.
"""
