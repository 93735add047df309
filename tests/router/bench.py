"""Measures every path of every link condition, wherever it is shaped, as many at once as there are phones for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.router.conditions import Case, different_paths, markdown, rounds
from tests.router.measure import OPEN, Found, Slot, differences, measure, path_rtt_ms

ATTEMPTS = 4
"""The host may be busy; what is shaped wrongly is so each time."""

Apply = Callable[[Mapping[Slot, Case]], None]


@dataclass(frozen=True)
class Outcome:
    """What was found of one path, and how it is not what was asked."""

    case: Case
    found: Found
    idle: Found
    problems: Sequence[str]

    def cells(self) -> list[str]:
        """Its part of the table."""
        asked, found = self.case.path, self.found
        rates = [
            "–" if kbps is None else f"{kbps:.0f} kbit/s ({100 * (kbps / wanted - 1):+.1f} %)"
            for kbps, wanted in ((found.down_kbps, asked.down_kbps or 1), (found.up_kbps, asked.up_kbps or 1))
        ]
        jitter = f"{found.rtt_ms_iqr:.1f} ms" if asked.down.jitter_ms or asked.up.jitter_ms else "–"
        wanted_loss = asked.round_trip_loss_percent
        loss = f"{found.loss_percent:.2f} % ({wanted_loss:.2f} %), {found.loss_sent} echoes" if wanted_loss else "–"
        return [*rates, f"{path_rtt_ms(asked, found, self.idle):.2f} ms", jitter, loss]


@dataclass
class Bench:
    """Phones, and how their paths are put under conditions.

    Attributes:
        slots: interfaces of phones that can be measured at the same time.
        server: address of the probe server.
        apply: makes the conditions real.
    """

    slots: Sequence[Slot]
    server: str
    apply: Apply
    cases: Sequence[Case] = field(default_factory=different_paths)
    outcomes: dict[Case, Outcome] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Measure the way that is shaped by nobody."""
        self.idle = measure(dict.fromkeys(self.slots, OPEN), self.server)
        self._rounds = rounds(self.cases, len(self.slots))

    def outcome(self, case: Case) -> Outcome:
        """What was found of it: measured now, with others, when it was not before."""
        if case not in self.outcomes:
            (together,) = (members for members in self._rounds if case in members)
            self._measure(together)
        return self.outcomes[case]

    def _measure(self, cases: Sequence[Case]) -> None:
        todo = dict(zip(self.slots, cases, strict=False))
        for _ in range(ATTEMPTS):
            self.apply(todo)
            found = measure({slot: case.path for slot, case in todo.items()}, self.server)
            for slot, case in todo.items():
                problems = differences(case.path, found[slot], self.idle[slot])
                self.outcomes[case] = Outcome(case, found[slot], self.idle[slot], problems)
            todo = {slot: case for slot, case in todo.items() if self.outcomes[case].problems}
            if not todo:
                return

    def table(self) -> str:
        """Everything asked and measured, in Markdown."""
        return markdown({case: self.outcome(case).cells() for case in self.cases})
