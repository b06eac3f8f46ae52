"""Prices as whole cents."""


def cents(price):
    """The text 12.50 is 1250."""
    whole, _, rest = price.partition(".")
    return int(whole) * 100 + int(rest.ljust(2, "0")[:2] or 0)
