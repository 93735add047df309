"""Find from samples of the screen when a media player played and when it stalled."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from mplab.scenarios.base.sampling import Sampled, ScreenSample, Spell

LOADING, POSITION, SKIP_AD, ENDED, PROBLEM = "loading", "position", "skip ad", "ended", "problem"
NAMES = ("player", LOADING, POSITION, SKIP_AD, ENDED, PROBLEM)
"""Names of the elements that a media app's section of ``app.yaml`` may have. ``player`` is the player itself."""

_STEP_S = 1.0
"""Resolution of the playback position that players show, s."""


@dataclass(frozen=True)
class Motion:
    """Start and stalls of a media player's playback, found in samples of the screen.

    Attributes:
        began: unix time of the first motion, s; None: the player never played.
        stalls: stalls after the first motion.
        until: unix time of the last sample, s.
        resolution_s: resolution of all times, s. Shorter stalls may be missed; the error of a time is at most half
            of the resolution.
        by: source of the times: ``loading``, a spinner, or ``position``, a clock in whole seconds.
    """

    began: float | None
    stalls: tuple[Spell, ...]
    until: float
    resolution_s: float
    by: str

    @property
    def played_s(self) -> float:
        """Return the time from the first motion to the last sample, minus the stalls, s; 0 without any motion."""
        if self.began is None:
            return 0.0
        return self.until - self.began - sum((stall.ended or self.until) - stall.began for stall in self.stalls)


def waits(look: ScreenSample) -> bool:
    """Return whether the player waits: the sample shows a spinner, a skippable advertisement or a problem."""
    return bool({LOADING, SKIP_AD, PROBLEM} & set(look.shown))


def motion(sampled: Sampled, *, spinner: bool) -> Motion:
    """Return start and stalls of a player's playback, found in samples of the screen.

    Args:
        sampled: at least one sample, with elements of `NAMES`.
        spinner: True: use the spinner ``loading``, which the app shows while it waits. False: use the element
            ``position``.
    """
    return _by_spinner(sampled) if spinner else _by_position(sampled)


def _by_spinner(sampled: Sampled) -> Motion:
    """Find start and stalls of a player that shows the element ``loading`` while it waits for data."""
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
    """Start and stalls that `_by_position` has found so far."""

    began: float | None = None
    stalls: list[Spell] = field(default_factory=list)
    changed: float = 0.0
    """Unix time of the last change of the displayed position, s: the middle between the two samples around it."""


def _by_position(sampled: Sampled) -> Motion:
    """Find start and stalls of a player that shows no spinner, only its playback position in whole seconds.

    A stall precedes each change of the position that comes too late by more than the resolution.
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
    """Return a displayed time in seconds: ``1:02:03``, ``0:07`` or ``0 minutes 7 seconds``; None: another text."""
    numbers = re.findall(r"\d+", text.partition(" of ")[0])
    if not numbers or len(numbers) > 3 or not (":" in text or len(numbers) > 1):
        return None
    total = 0
    for number in numbers:
        total = total * 60 + int(number)
    return total


def stall_fields(stalls: Sequence[Spell], until: float) -> list[dict[str, float]]:
    """Return the stalls as JSON values for an observation: start ``at``, unix time in s, and ``duration_s``.

    A stall without an end lasts until `until`, the unix time of the last sample.
    """
    return [
        {"at": round(stall.began, 3), "duration_s": round((stall.ended or until) - stall.began, 3)} for stall in stalls
    ]
