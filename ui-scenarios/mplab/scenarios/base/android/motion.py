"""Find when a player played and when it stalled, from samples of the screen."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from mplab.scenarios.base.sampling import Sampled, ScreenSample, Spell

LOADING, POSITION, SKIP_AD, ENDED, PROBLEM = "loading", "position", "skip ad", "ended", "problem"
NAMES = ("player", LOADING, POSITION, SKIP_AD, ENDED, PROBLEM)
"""Elements that a player's section of ``app.yaml`` may have. ``player`` is shown as long as the player is visible."""

_STEP_S = 1.0
"""Step of the positions that players show, s."""


@dataclass(frozen=True)
class Motion:
    """Playback of a player, as the screen showed it.

    Attributes:
        began: unix time of the first motion, s; None: it never played.
        stalls: stalls after the first motion.
        until: unix time of the last sample, s.
        resolution_s: resolution of all times, s. Shorter stalls may be missed; a time is off by at most half of it.
        by: source of the times: ``loading``, a spinner, or ``position``, a clock in whole seconds.
    """

    began: float | None
    stalls: tuple[Spell, ...]
    until: float
    resolution_s: float
    by: str

    @property
    def played_s(self) -> float:
        """Time from the first motion to the last sample, without the stalls, s."""
        if self.began is None:
            return 0.0
        return self.until - self.began - sum((stall.ended or self.until) - stall.began for stall in self.stalls)


def waits(look: ScreenSample) -> bool:
    """Return whether the player waits: it shows a spinner, a skippable advertisement or a problem."""
    return bool({LOADING, SKIP_AD, PROBLEM} & set(look.shown))


def motion(sampled: Sampled, *, spinner: bool) -> Motion:
    """Return the playback that samples show.

    Args:
        sampled: at least one sample, with elements of `NAMES`.
        spinner: True: the app shows ``loading`` while it waits. False: its ``position`` is read.
    """
    return _by_spinner(sampled) if spinner else _by_position(sampled)


def _by_spinner(sampled: Sampled) -> Motion:
    """Return the playback of a player that shows ``loading`` while it waits for data."""
    began: float | None = None
    stalls: list[Spell] = []
    since: float | None = None
    before: ScreenSample | None = None
    for look in sampled.looks:
        between = look.t if before is None else (before.t + look.t) / 2
        still = waits(look) or not ({"player", POSITION} & set(look.shown))
        if not still and began is None:
            began = between
        elif still and began is not None and since is None and ENDED not in look.shown:
            since = between
        elif not still and since is not None:
            stalls.append(Spell(since, between))
            since = None
        before = look
    if since is not None:
        stalls.append(Spell(since, None))
    return Motion(began, tuple(stalls), sampled.looks[-1].t, sampled.resolution_s, LOADING)


@dataclass
class _Clock:
    """Playback that was found in the samples so far, by the position that the player displays."""

    began: float | None = None
    stalls: list[Spell] = field(default_factory=list)
    changed: float = 0.0
    """Unix time of the last change, s: the middle between the two samples around it."""


def _by_position(sampled: Sampled) -> Motion:
    """Return the playback of a player that shows only its position, in whole seconds.

    A change of the position that is later than the resolution allows shows a stall before it.
    """
    slack_s = _STEP_S / 2 + sampled.resolution_s
    clock = _Clock()
    shown: int | None = None
    before: ScreenSample | None = None
    for look in sampled.looks:
        position = seconds_of(look.shown.get(POSITION, ""))
        between = look.t if before is None else (before.t + look.t) / 2
        if position is not None and shown is not None and position != shown:
            steps = position - shown if position > shown else 1  # another track begins at 0:00
            if clock.began is None:
                clock.began = between - steps * _STEP_S
            elif between - clock.changed > steps * _STEP_S + slack_s:
                clock.stalls.append(Spell(clock.changed + _STEP_S, between - (steps - 1) * _STEP_S))
            clock.changed = between
        shown = position if position is not None else shown
        before = look
    end = sampled.looks[-1].t
    if clock.began is not None and end - clock.changed > _STEP_S + slack_s:
        clock.stalls.append(Spell(clock.changed + _STEP_S, None))
    return Motion(clock.began, tuple(clock.stalls), end, max(_STEP_S, sampled.resolution_s), POSITION)


def seconds_of(text: str) -> int | None:
    """Parse ``1:02:03``, ``0:07`` or a screen reader's text (``0 minutes 7 seconds``) as seconds; None: neither."""
    numbers = re.findall(r"\d+", text.partition(" of ")[0])
    if not numbers or len(numbers) > 3 or not (":" in text or len(numbers) > 1):
        return None
    total = 0
    for number in numbers:
        total = total * 60 + int(number)
    return total


def stall_fields(stalls: Sequence[Spell], until: float) -> list[dict[str, float]]:
    """Return stalls as fields of an observation. A stall without an end lasts until `until`, the last sample."""
    return [
        {"at": round(stall.began, 3), "duration_s": round((stall.ended or until) - stall.began, 3)} for stall in stalls
    ]
