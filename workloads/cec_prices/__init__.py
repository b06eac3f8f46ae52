"""The average prices of `cec`, section IV: `input` makes purchases, `oracle` has the exact average prices."""
