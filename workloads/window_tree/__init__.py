"""The window tree of `ppa`, figure 6: `input` makes tuples of numbers, `oracle` has the exact results of the tree."""
