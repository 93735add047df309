"""Condition of one path: both directions between phone and proxy."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Self

from pydantic.dataclasses import dataclass

from mplab.format.direction import WAYS, Direction, Queue, Way
from mplab.format.record import CONFIG
from mplab.format.units import format_duration_ms


@dataclass(frozen=True, config=CONFIG)
class PathCondition:
    """Condition of a path between phone and proxy."""

    down: Direction = Direction()
    """Direction towards the phone."""
    up: Direction = Direction()
    """Direction from the phone."""

    @classmethod
    def of(  # noqa: PLR0917 - in the order of a link file
        cls,
        down_kbps: float | None,
        up_kbps: float | None,
        rtt_ms: float,
        loss_percent: float = 0.0,
        jitter_ms: float = 0.0,
        queue: Queue = Queue(),  # noqa: B008 - frozen
    ) -> Self:
        """Return a path condition whose directions differ only in their rates (None: unlimited).

        Each direction has half of `rtt_ms` as delay.
        """
        up = Direction(up_kbps, rtt_ms / 2, jitter_ms, loss=loss_percent, queue=queue)
        return cls(down=replace(up, rate_kbps=down_kbps), up=up)

    def way(self, way: Way) -> Direction:
        """Return the condition of direction `way`: ``down`` or ``up``."""
        return self.down if way == "down" else self.up

    @property
    def down_kbps(self) -> float | None:
        """Rate towards the phone, kbit/s; None: unlimited, or set by a trace."""
        return self.down.rate_kbps

    @property
    def up_kbps(self) -> float | None:
        """Rate from the phone, kbit/s; None: unlimited, or set by a trace."""
        return self.up.rate_kbps

    @property
    def rtt_ms(self) -> float:
        """Round-trip time of the idle path, ms."""
        return self.down.delay_ms + self.up.delay_ms

    @property
    def strips_multipath(self) -> bool:
        """Return whether a middlebox on the path removes the options of Multipath TCP."""
        return "strip-mptcp" in {self.down.middlebox, self.up.middlebox}

    @property
    def round_trip_loss_percent(self) -> float:
        """Probability that a packet or its answer is lost, percent, rounded to 6 decimals."""
        delivered = (1 - self.down.loss_percent / 100) * (1 - self.up.loss_percent / 100)
        return round(100 * (1 - delivered), 6)

    def dark(self) -> Self:
        """Return the same condition, but with 100 % loss in both directions."""
        return replace(self, down=replace(self.down, loss=100.0), up=replace(self.up, loss=100.0))

    def with_queue(self, queue: Queue) -> Self:
        """Return the same condition with queues of the length of `queue`; their disciplines stay."""
        ways = {way: self.way(way) for way in WAYS}
        lengths = {way: replace(old.queue, unit=queue.unit, length=queue.length) for way, old in ways.items()}
        return replace(self, **{way: replace(old, queue=lengths[way]) for way, old in ways.items()})

    def problems(self) -> Iterator[str]:
        """Yield one sentence for each contradiction between values of the condition."""
        texts = {direction: list(_problems(self.way(direction))) for direction in WAYS}
        if texts["down"] == texts["up"]:
            half = " (half the rtt)" if self.down.delay_ms else ""
            yield from (text + half if "one-way delay" in text else text for text in texts["down"])
        else:
            yield from (f"{direction}: {text}" for direction, problems in texts.items() for text in problems)

    def __str__(self) -> str:
        """Return ``7.04 Mbit/s down, 2.02 Mbit/s up, RTT 50 ms``, and other values that differ from their defaults."""
        parts = [f"{self.down.text('rate')} down", f"{self.up.text('rate')} up"]
        rtt = f"RTT {format_duration_ms(self.rtt_ms)}"
        if self.down.delay_ms != self.up.delay_ms:
            rtt += f" ({self.down.text('delay')} down, {self.up.text('delay')} up)"
        parts.append(rtt)
        down, up = self.down.extras(), self.up.extras()
        parts += [text for text in down if text in up]
        parts += [f"{text} down" for text in down if text not in up]
        parts += [f"{text} up" for text in up if text not in down]
        return ", ".join(parts)


OPEN = PathCondition.of(None, None, 0.0)
"""Unshaped path."""


def _problems(way: Direction) -> Iterator[str]:
    if way.jitter_ms > way.delay_ms:
        jitter, delay = format_duration_ms(way.jitter_ms), format_duration_ms(way.delay_ms)
        yield f"jitter {jitter} is more than the one-way delay {delay}"
    if way.reorder_percent and not way.delay_ms:
        yield "reorder without a delay: packets overtake others by skipping it"
