"""In place of the threads that do the slow work of a slot."""


class AtOnce:
    """Does in the caller's thread what is left to another one."""

    def submit(self, act, then):
        then(act())


class Later:
    """Does nothing until it is told to."""

    def __init__(self):
        self._left = []

    def submit(self, act, then):
        self._left.append((act, then))

    def take(self):
        """What there is to do, in order, each with what is to be called with its result."""
        left, self._left = self._left, []
        return left

    def go_on(self):
        for act, then in self.take():
            then(act())
