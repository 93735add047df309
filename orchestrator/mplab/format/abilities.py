"""Limits of a shaper, and the parts of a link condition that exceed them."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from mplab.format.direction import WAYS, Direction, Discipline
from mplab.format.link import LinkCondition
from mplab.format.units import format_duration_ms, format_rate, format_size


@dataclass(frozen=True)
class Abilities:
    """Limits of one kind of shaper. All numbers are maxima, except `lowest_rate_kbps`.

    Attributes:
        title: name of the shaper in messages.
        disciplines: supported queue disciplines.
        traces: True if the shaper replays packet-delivery traces.
        middleboxes: True if the shaper can remove the options of Multipath TCP.
        shapes: False: there is no shaper; the path can only stay unshaped.
    """

    title: str
    disciplines: Collection[Discipline]
    traces: bool = True
    middleboxes: bool = False
    shapes: bool = True
    lowest_rate_kbps: float = 1.0
    rate_kbps: float = 10_000_000.0
    delay_ms: float = 60_000.0
    queue_bytes: int = 64 * 2**20
    queue_packets: int = 1_000_000


def refusals(link: LinkCondition, shapers: Abilities | Mapping[str, Abilities]) -> list[str]:
    """Return the parts of a link condition that exceed the limits of its shapers, each once.

    Example of a part: ``wifi, down: … has no queue discipline 'cake'``.

    Args:
        link: condition to check.
        shapers: limits of the shaper of both paths, or limits by path (``wifi``, ``lte``). A path that is missing in
            the mapping is not checked.
    """
    texts: dict[str, str] = {}
    for where, condition in link.conditions():
        shaper = shapers if isinstance(shapers, Abilities) else shapers.get(where.split()[0])
        if shaper is None:
            continue
        for direction in WAYS:
            for text in _refused(condition.way(direction), shaper):
                texts.setdefault(text, f"{where}, {direction}: {text}")
    return list(texts.values())


def _refused(way: Direction, shaper: Abilities) -> Iterator[str]:
    if not shaper.shapes:
        if way != Direction():
            values = ", ".join([way.text("rate"), f"delay {way.text('delay')}", *way.extras()])
            yield f"{shaper.title}: found {values}; allowed: unlimited, rtt 0 ms (an unshaped path)"
        return
    queue = way.queue
    if queue.discipline not in shaper.disciplines:
        known = ", ".join(shaper.disciplines)
        yield f"{shaper.title} has no queue discipline '{queue.discipline}'; it has: {known}"
    if way.trace is not None and not shaper.traces:
        yield f"{shaper.title} cannot play packet-delivery traces (trace {way.trace.name})"
    elif way.trace is not None and (mean := way.trace.profile().mean_kbps) > shaper.rate_kbps:
        most = format_rate(shaper.rate_kbps)
        yield f"trace {way.trace.name} offers {format_rate(mean)} in the mean: {shaper.title} can give at most {most}"
    if way.middlebox != "none" and not shaper.middleboxes:
        yield f"{shaper.title} has no middlebox '{way.middlebox}'"
    if way.rate_kbps is not None and not shaper.lowest_rate_kbps <= way.rate_kbps <= shaper.rate_kbps:
        least, most = format_rate(shaper.lowest_rate_kbps), format_rate(shaper.rate_kbps)
        yield f"rate {format_rate(way.rate_kbps)}: {shaper.title} can give {least} to {most}"
    if max(way.delay_ms, way.jitter_ms) > shaper.delay_ms:
        delay, most = (format_duration_ms(ms) for ms in (max(way.delay_ms, way.jitter_ms), shaper.delay_ms))
        yield f"delay {delay}: {shaper.title} can give at most {most}"
    if queue.unit == "bytes" and queue.length > shaper.queue_bytes:
        yield f"queue {queue}: {shaper.title} can hold at most {format_size(shaper.queue_bytes)}"
    if queue.unit == "packets" and queue.length > shaper.queue_packets:
        yield f"queue {queue}: {shaper.title} can hold at most {shaper.queue_packets} packets"
