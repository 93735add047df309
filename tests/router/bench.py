"""Measures every path of every link condition on any shaper, as many paths at once as there are phones."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from tests.router.conditions import Case, different_paths, rounds
from tests.router.measure import (
    OPEN,
    Found,
    Slot,
    differences,
    measure,
    path_rtt_ms,
    serialisation_ms,
    what_the_host_spoils,
)
from tests.router.tables import table

FAILURES = 3
"""Number of failed attempts that make a path wrong. An attempt fails only if unshaped packets are not affected."""

ATTEMPTS = 8
"""Maximum number of attempts for a path, including those that a busy host has spoilt."""

Apply = Callable[[Mapping[Slot, Case]], None]


@dataclass(frozen=True)
class Outcome:
    """Measurement of one path, the path's own round-trip time, and its differences from the request.

    `spoilt`: how the host affected the same packets without shaping in the last attempt; if it did, ignore `problems`.
    """

    case: Case
    found: Found
    rtt_ms: float
    problems: Sequence[str]
    spoilt: Sequence[str] = ()

    def check(self) -> None:
        """Assert that the path meets the request; skip the test if a busy host spoils the measurement."""
        if self.problems and self.spoilt:
            pytest.skip(f"the host spoils what is measured: {'; '.join(self.spoilt)}")
        assert not self.problems

    def cells(self) -> list[str]:
        """Return the table cells: both rates with their errors, round-trip time, and measured and requested loss."""
        requested, measured = self.case.path, self.found
        loss = f"{measured.loss_percent:.2f} % ({requested.round_trip_loss_percent:.2f} %)"
        return [
            _rate(requested.down_kbps, measured.down_kbps),
            _rate(requested.up_kbps, measured.up_kbps),
            f"{self.rtt_ms:.2f}",
            loss if requested.round_trip_loss_percent else "–",
        ]


def _rate(asked: float | None, found: float | None) -> str:
    if not asked or found is None:
        return "–"
    return f"{found:.0f} ({100 * (found / asked - 1):+.1f} %)".replace("-", "−")


@dataclass
class Bench:
    """Phones, and the shaper of their paths.

    Attributes:
        slots: interfaces of phones that can be measured at the same time.
        server: address of the probe server.
        apply: applies conditions to slots.
        serialises: the shaper keeps a link busy for the serialisation time of a packet.
        cases: paths to measure.
        outcomes: results of the paths that have been measured.
    """

    slots: Sequence[Slot]
    server: str
    apply: Apply
    serialises: bool = False
    cases: Sequence[Case] = field(default_factory=different_paths)
    outcomes: dict[Case, Outcome] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Measure the unshaped paths."""
        self.idle = measure(dict.fromkeys(self.slots, OPEN), self.server)
        self._rounds = rounds(self.cases, len(self.slots))

    def outcome(self, case: Case) -> Outcome:
        """Return the outcome of a path. Measure it first, together with its round, if it has none."""
        if case not in self.outcomes:
            (together,) = (members for members in self._rounds if case in members)
            self.judge(dict(zip(self.slots, together, strict=False)))
        return self.outcomes[case]

    def judge(self, todo: Mapping[Slot, Case]) -> None:
        """Measure several cases at once, each at its slot, until each meets the request, is wrong, or is spoilt."""
        failures = dict.fromkeys(todo.values(), 0)
        for _ in range(ATTEMPTS):
            self.apply(todo)
            measured = measure({slot: case.path for slot, case in todo.items()}, self.server)
            for slot, case in todo.items():
                rtt_ms = path_rtt_ms(case.path, measured[slot], self.idle[slot])
                if self.serialises:
                    rtt_ms -= serialisation_ms(case.path)
                problems = differences(case.path, measured[slot], rtt_ms)
                self.outcomes[case] = Outcome(case, measured[slot], rtt_ms, problems)
            todo = {slot: case for slot, case in todo.items() if self.outcomes[case].problems}
            if not todo:
                return
            for slot, spoilt in self._control(todo).items():
                case = todo[slot]
                failures[case] += not spoilt
                self.outcomes[case] = replace(self.outcomes[case], spoilt=spoilt)
            todo = {slot: case for slot, case in todo.items() if failures[case] < FAILURES}
            if not todo:
                return

    def _control(self, cases: Mapping[Slot, Case]) -> dict[Slot, list[str]]:
        """Send the same packets at the same time over unshaped paths; return how the host affects them."""
        self.apply({slot: Case("open", OPEN, changed=case.changed) for slot, case in cases.items()})
        measured = measure({slot: case.path for slot, case in cases.items()}, self.server)
        return {slot: what_the_host_spoils(case.path, measured[slot], self.idle[slot]) for slot, case in cases.items()}

    def table(self) -> str:
        """Return the table of requested and measured values, in Markdown."""
        return table({case: self.outcome(case).cells() for case in self.cases})
