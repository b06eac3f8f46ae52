"""The texts that events are made of: short lists, so that a column of text is an index into one of them."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa

from workloads.nexmark.counters import below, bits

PLACES = (
    ("Phoenix", "AZ"), ("Tucson", "AZ"), ("Los Angeles", "CA"), ("San Francisco", "CA"), ("Boise", "ID"),
    ("Portland", "OR"), ("Bend", "OR"), ("Seattle", "WA"), ("Kent", "WA"), ("Cheyenne", "WY"),
)  # fmt: skip
FIRST_NAMES = ("Ada", "Ben", "Cleo", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivo", "June")
LAST_NAMES = ("Archer", "Baker", "Carter", "Dyer", "Fisher", "Gardner", "Hunter", "Mason", "Porter", "Weaver")
GOODS = ("lamp", "desk", "clock", "violin", "globe", "kettle", "mirror", "atlas", "camera", "bicycle")
KINDS = ("old", "rare", "plain", "large", "small", "broken", "signed", "gilded", "painted", "wooden")
WELL_KNOWN_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
OTHER_CHANNELS = 10_000
FILLERS = 1024


def _pairs(firsts: tuple[str, ...], seconds: tuple[str, ...], form: str) -> pa.Array:
    return pa.array([form.format(first, second) for first, second in itertools.product(firsts, seconds)])


def filler(length: int) -> pa.Array:
    """Texts of random lower-case letters, the same ones every time."""
    letters = 97 + below(bits(0, length, np.arange(FILLERS * length)), 26)
    return pa.array([row.tobytes().decode() for row in letters.astype(np.uint8).reshape(FILLERS, length)])


def _urls() -> list[str]:
    """One address for each channel; it names the channel unless that is a well-known one."""
    known, folders = len(WELL_KNOWN_CHANNELS), below(bits(1, 0, np.arange(3 * len(CHANNELS))), 10**4).tolist()
    channel_ids = [""] * known + [f"&channel_id={i}" for i in range(OTHER_CHANNELS)]
    paths = ["/".join(f"f{n}" for n in folders[i : i + 3]) for i in range(0, len(folders), 3)]
    return [
        f"https://auctions.example/{path}/item.htm?query=1{end}" for path, end in zip(paths, channel_ids, strict=True)
    ]


NAMES = _pairs(FIRST_NAMES, LAST_NAMES, "{} {}")
ADDRESSES = _pairs(FIRST_NAMES, LAST_NAMES, "{}.{}@mail.example")
ITEMS = _pairs(KINDS, GOODS, "{} {}")
CITIES, STATES = (pa.array(names) for names in zip(*PLACES, strict=True))
CHANNELS = pa.array([*WELL_KNOWN_CHANNELS, *(f"channel-{i}" for i in range(OTHER_CHANNELS))])
URLS = pa.array(_urls())
PERSON_EXTRA, AUCTION_EXTRA, BID_EXTRA = filler(40), filler(160), filler(16)
