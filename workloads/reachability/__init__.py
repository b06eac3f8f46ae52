"""The cyclic query of `checkmate`: `input` makes links and source nodes, `oracle` has the paths that are left."""
