"""Tweets: the same ones however they are made, and with as many hashtags as in the paper."""

import json
from collections import Counter

from experiments.workloads.hashtags import HashtagsSpec
from workloads.hashtags.input import TWEETS, records, tweets
from workloads.schedule import Schedule

SPEC = HashtagsSpec(stream_seed=7, hashtags=1000)
SCHEDULE = Schedule(1_795_173_799_675_000_000, 1000.0)


def test_tweets_have_one_to_three_hashtags_and_as_many_in_the_mean_as_the_paper_s():
    found = tweets(SPEC, SCHEDULE, 5, 40_005)
    assert found.schema == TWEETS
    assert found["position"].to_pylist() == list(range(5, 40_005))
    assert found["at_ns"].to_pylist() == [SCHEDULE.due_ms(p) * 10**6 for p in range(5, 40_005)]
    sizes = Counter(len(text.split(" ")) for text in found["text"].to_pylist())
    assert set(sizes) == {1, 2, 3}
    assert abs(sum(n * times for n, times in sizes.items()) / 40_000 - 894_098 / 569_382) < 0.02


def test_hashtags_are_within_their_bound_and_low_numbers_are_frequent():
    words = Counter(word for text in tweets(SPEC, SCHEDULE, 0, 40_000)["text"].to_pylist() for word in text.split(" "))
    numbers = [int(word.removeprefix("#h")) for word in words.elements()]
    assert 0 <= min(numbers) < max(numbers) < 1000
    # The product of two even draws from 0 to 1 is below x with probability x (1 - ln x): 0.33 for x = 0.1.
    assert abs(sum(number < 100 for number in numbers) / len(numbers) - 0.33) < 0.02


def test_messages_say_the_text_of_the_same_tweets():
    found = [json.loads(value) for value in records(SPEC, SCHEDULE)(100, 200)]
    assert found == [
        {"kind": "tweet", **each} for each in tweets(SPEC, SCHEDULE, 100, 200).select(["text"]).to_pylist()
    ]


def test_another_seed_gives_other_tweets():
    assert tweets(SPEC, SCHEDULE, 0, 9) != tweets(SPEC.model_copy(update={"stream_seed": 8}), SCHEDULE, 0, 9)
