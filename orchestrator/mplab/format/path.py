"""The condition of one path: both directions between phone and proxy."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Self

from pydantic.dataclasses import dataclass

from mplab.format.direction import WAYS, Direction, Queue, Way
from mplab.format.record import CONFIG
from mplab.format.units import format_duration_ms


@dataclass(frozen=True, config=CONFIG)
class PathCondition:
    """A path between phone and proxy."""

    down: Direction = Direction()
    """Towards the phone."""
    up: Direction = Direction()
    """From the phone."""

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
        """A path whose directions differ in their rates alone (None: unlimited); half the RTT is spent in each."""
        up = Direction(up_kbps, rtt_ms / 2, jitter_ms, loss=loss_percent, queue=queue)
        return cls(down=replace(up, rate_kbps=down_kbps), up=up)

    def way(self, way: Way) -> Direction:
        """One of the two directions."""
        return self.down if way == "down" else self.up

    @property
    def down_kbps(self) -> float | None:
        """Rate towards the phone; None: unlimited, or by a trace."""
        return self.down.rate_kbps

    @property
    def up_kbps(self) -> float | None:
        """Rate from the phone; None: unlimited, or by a trace."""
        return self.up.rate_kbps

    @property
    def rtt_ms(self) -> float:
        """Of the idle path."""
        return self.down.delay_ms + self.up.delay_ms

    @property
    def round_trip_loss_percent(self) -> float:
        """Lost on one way or on the other."""
        kept = (1 - self.down.loss_percent / 100) * (1 - self.up.loss_percent / 100)
        return round(100 * (1 - kept), 6)

    def dark(self) -> Self:
        """The same path, losing everything."""
        return replace(self, down=replace(self.down, loss=100.0), up=replace(self.up, loss=100.0))

    def problems(self) -> Iterator[str]:
        """What cannot be, in words."""
        texts = {way: list(_problems(self.way(way))) for way in WAYS}
        if texts["down"] == texts["up"]:
            half = " (half the rtt)" if self.down.delay_ms else ""
            yield from (text + half if "one-way delay" in text else text for text in texts["down"])
        else:
            yield from (f"{way}: {text}" for way, found in texts.items() for text in found)

    def __str__(self) -> str:
        """``7.04 Mbit/s down, 2.02 Mbit/s up, RTT 50 ms``, and what differs from the defaults."""
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
"""A path that is left alone."""


def _problems(way: Direction) -> Iterator[str]:
    if way.jitter_ms > way.delay_ms:
        jitter, delay = format_duration_ms(way.jitter_ms), format_duration_ms(way.delay_ms)
        yield f"jitter {jitter} is more than the one-way delay {delay}"
    if way.reorder_percent and not way.delay_ms:
        yield "reorder without a delay: packets overtake others by skipping it"
