"""The ids of the catalogue and the modules behind them, which take seconds to import."""

MODULES = {  # module: what it reproduces, in the order of the list
    "utilization.formulas": ("utilization/fig-04", "utilization/fig-10", "utilization/fig-11", "utilization/fig-14"),
    "utilization.simulated": ("utilization/fig-05", "utilization/fig-12"),
    "utilization.table": ("utilization/table-1",),
    "utilization.gains": ("utilization/systems", "utilization/fig-13", "utilization/fig-15", "utilization/fig-16"),
    "checkmate.features": ("checkmate/table-1",),
    "checkmate.rollback": ("checkmate/fig-04", "checkmate/fig-05"),
    "checkmate.throughput": ("checkmate/fig-07",),
    "checkmate.messages": ("checkmate/table-2",),
    "checkmate.checkpoints": ("checkmate/fig-08", "checkmate/table-3"),
    "checkmate.recoveries": ("checkmate/fig-09", "checkmate/fig-10", "checkmate/fig-11"),
    "checkmate.skew": ("checkmate/fig-12a", "checkmate/fig-12b", "checkmate/fig-13"),
    "checkmate.cycle": ("checkmate/table-4",),
    "checkmate.staggered": ("checkmate/staggered",),
    "ppa.plans": ("ppa/examples", "ppa/fig-14a", "ppa/fig-14b", "ppa/fig-14c", "ppa/fig-14d"),
    "ppa.recoveries": ("ppa/fig-07", "ppa/fig-08", "ppa/fig-10"),
    "ppa.checkpoint_cost": ("ppa/fig-09",),
    "ppa.tentative_output": ("ppa/fig-12", "ppa/fig-13"),
    "cec.baseline": ("cec/fig-05",),
    "cec.recovery_time": ("cec/fig-06", "cec/fig-07"),
    "cec.checkpoint_period": ("cec/fig-08", "cec/fig-09"),
    "incremental.plans": ("incremental/fig-02", "incremental/fig-16a", "incremental/fig-16b", "incremental/fig-16c"),
    "incremental.provisioning": ("incremental/fig-07",),
    "incremental.replays": ("incremental/fig-10", "incremental/fig-11"),
    "incremental.availability": ("incremental/fig-12",),
    "incremental.relative_latency": ("incremental/fig-13", "incremental/fig-14", "incremental/fig-15"),
    "incremental.order": ("incremental/fig-18", "incremental/fig-19", "incremental/fig-20"),
}
MODULE_OF = {id: f"reproductions.{module}" for module, ids in MODULES.items() for id in ids}
IDS = tuple(MODULE_OF)
