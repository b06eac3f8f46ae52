"""The top-100 query of `ppa`, section VI-B: `input` makes requests for entries, `oracle` has the exact top 100."""
