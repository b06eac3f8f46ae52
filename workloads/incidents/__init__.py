"""The incident query of `ppa`, section VI-B: `input` makes locations and reports, `oracle` has the exact results."""
