"""The queries over hashtags of `incremental`, section 7: `input` makes tweets, `oracle` has the exact results."""
