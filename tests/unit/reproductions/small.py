"""Sizes at which a reproduction takes a second or two."""

SMALL = {
    "utilization/fig-05": 20,
    "utilization/fig-12": 20,
    **{f"ppa/fig-14{panel}": 2 for panel in "abcd"},
    **{f"incremental/fig-16{panel}": 2 for panel in "abc"},
}
