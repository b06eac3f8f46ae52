"""The ids of the catalogue, without the modules behind them, which take seconds to import."""

IDS = (
    *("utilization/fig-04", "utilization/fig-05", "utilization/fig-10", "utilization/fig-11", "utilization/fig-12"),
    *("utilization/systems", "utilization/fig-13", "utilization/fig-14", "utilization/fig-15", "utilization/fig-16"),
    *("checkmate/table-1", "checkmate/fig-04", "checkmate/fig-05", "checkmate/table-2", "checkmate/fig-08"),
    *("checkmate/table-3", "checkmate/fig-09", "checkmate/fig-10", "checkmate/fig-11", "checkmate/fig-07"),
    *("checkmate/fig-12", "checkmate/fig-13", "checkmate/table-4"),
    *("ppa/examples", "ppa/fig-14a", "ppa/fig-14b", "ppa/fig-14c", "ppa/fig-14d"),
    *("incremental/fig-02", "incremental/fig-16a", "incremental/fig-16b", "incremental/fig-16c"),
)
