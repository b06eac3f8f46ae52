"""Sizes at which a reproduction takes a second or two."""

SMALL = {
    "utilization/fig-05": 20,
    "utilization/fig-12": 20,
    "ppa/fig-14a": 5,  # skew changes little
    **{f"ppa/fig-14{panel}": 2 for panel in "bcd"},
    **{f"incremental/fig-16{panel}": 2 for panel in "abc"},
}
