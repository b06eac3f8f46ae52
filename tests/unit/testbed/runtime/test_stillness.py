"""The end of a dataflow with a cycle is found, and never while something can still happen."""

from random import Random

import pytest

from testbed.runtime.stillness import Counts, Stillness

SLOTS, EPOCH, MOST_TURNS = ("a", "b", "c"), 4, 20_000


class Traffic:
    """Slots that send frames to each other while their sources go on, and others for frames that they get; each tells
    its counts when it likes, and what it tells takes its time. A frame makes fewer than one on average."""

    def __init__(self, seed):
        self.random, self.stillness = Random(seed), Stillness()
        self.sent, self.processed = dict.fromkeys(SLOTS, 0), dict.fromkeys(SLOTS, 0)
        self.left, self.asked = dict.fromkeys(SLOTS, 20), dict.fromkeys(SLOTS, 0)
        self.under_way, self.on_their_way, self.told, self.orders = [], [], {slot: Counts() for slot in SLOTS}, []

    @property
    def over(self):
        return not any(self.left.values()) and not self.under_way

    def turn(self):
        slot = self.random.choice(SLOTS)
        step = self.random.choice((self.read, self.process, self.tell, self.hear, self.obey))
        step(slot)

    def read(self, slot):
        if self.left[slot]:
            self.left[slot] -= 1
            self.send(slot)

    def send(self, slot):
        self.sent[slot] += 1
        self.under_way.append(self.random.choice(SLOTS))

    def process(self, slot):
        if slot in self.under_way:
            self.under_way.remove(slot)
            self.processed[slot] += 1
            for _ in range(self.random.choice((0, 0, 1, 2))):
                self.send(slot)

    def tell(self, slot):
        ended = not self.left[slot]
        self.on_their_way.append((slot, Counts(EPOCH, self.asked[slot], self.sent[slot], self.processed[slot], ended)))

    def hear(self, slot):
        mine = [told for told in self.on_their_way if told[0] == slot]
        if mine:
            self.on_their_way.remove(mine[0])
            self.told[slot] = mine[0][1]
        if self.stillness.hear(EPOCH, set(SLOTS), self.told):
            self.orders += [(slot, self.stillness.asking) for slot in SLOTS]

    def obey(self, slot):
        mine = [order for order in self.orders if order[0] == slot]
        if mine:
            self.orders.remove(mine[0])
            self.asked[slot] = mine[0][1]


@pytest.mark.parametrize("seed", range(100))
def test_the_end_is_found_once_nothing_is_under_way(seed):
    traffic = Traffic(seed)
    for _ in range(MOST_TURNS):
        traffic.turn()
        if traffic.stillness.found:
            break
    assert traffic.stillness.found
    assert traffic.over


def answer(stillness, *counts):
    found = dict(zip(SLOTS, counts, strict=False))
    stillness.hear(EPOCH, set(found), found)
    return stillness.found


def at_rest(asked, epoch=EPOCH, ended=True):
    return Counts(epoch, asked, 7, 7, ended)


def test_it_takes_two_counts_that_were_asked_for_in_this_epoch():
    stillness = Stillness()
    assert not answer(stillness, at_rest(0))
    assert not answer(stillness, at_rest(stillness.asking, epoch=EPOCH - 1)), "of another epoch"
    assert not answer(stillness, at_rest(stillness.asking - 1)), "before it was asked"
    first = stillness.asking
    assert not answer(stillness, at_rest(first))
    assert not answer(stillness, at_rest(first)), "the same count again"
    assert answer(stillness, at_rest(stillness.asking))


def test_sources_that_go_on_and_a_new_epoch_begin_it_anew():
    stillness = Stillness()
    answer(stillness, at_rest(0))
    assert not answer(stillness, at_rest(stillness.asking, ended=False))
    assert not answer(stillness, at_rest(stillness.asking))
    assert answer(stillness, at_rest(stillness.asking))
    stillness.hear(EPOCH + 1, {"a"}, {"a": at_rest(stillness.asking)})
    assert not stillness.found
