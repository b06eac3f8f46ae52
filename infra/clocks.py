"""The offset between the clock of a host and that of this machine."""

from __future__ import annotations

from dataclasses import dataclass, replace

from infra.strikes.strike import Proof


@dataclass(frozen=True)
class ClockOffset:
    """How far a host's clock is ahead of this machine's, as measured [ns]; the truth is within `uncertainty_ns` of it.

    What is not more than its uncertainty is taken for none: hosts that live by one clock are not told apart by noise.
    """

    offset_ns: int
    uncertainty_ns: int

    @property
    def applied_ns(self) -> int:
        """The offset that is used [ns]: 0 if the measured one is within its uncertainty."""
        return self.offset_ns if abs(self.offset_ns) > self.uncertainty_ns else 0

    def there(self, our_ns: int) -> int:
        """A moment of our clock by the host's."""
        return our_ns + self.applied_ns

    def here(self, proof: Proof) -> Proof:
        """A proof whose moments are by the host's clock, with those of ours."""
        ahead_ns = self.applied_ns
        return replace(proof, fired_ns=proof.fired_ns - ahead_ns, proved_ns=proof.proved_ns - ahead_ns)
