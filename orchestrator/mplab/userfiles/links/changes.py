"""Read ``changes`` of a link condition: changes of its paths while a scenario runs.

A file states each change once. `spread` expands a change into moments, one for each repetition and step. A moment has
the path's whole condition from that time on.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from mplab.format.direction import WAYS, Distribution, Queue, Way
from mplab.format.link import Moment, PathName
from mplab.format.names import FileModel
from mplab.format.path import PathCondition
from mplab.format.units import DurationMs, DurationS, Percent, format_duration_ms, format_duration_s
from mplab.userfiles.links.pathfile import PATH_KEYS, DirectionKey, LossKey, QueueKey, Setting, settings

MAX_MOMENTS = 10_000
"""Maximum number of moments of one link condition. Both parts of a change of the access point count as one."""

LONGEST_S = 3600.0
DEFAULT_GONE_S = 3.0
"""Default time without an access point during a handover, seconds: scanning, association, DHCP."""

_VALUES = ("down", "up", *(key for key in PATH_KEYS if key != "middlebox"))
_GRADUAL = ("down", "up", "rtt", "loss", "jitter", "reorder", "duplicate")
_PRESENCE = ("interface", "radio", "access_point")


def _within(time_s: float) -> float:
    if time_s > LONGEST_S:
        raise ValueError(f"time {format_duration_s(time_s)}: must be at most {format_duration_s(LONGEST_S)}")
    return time_s


_UNSAID: Any = ""
"""Default of keys that the file does not give; see `ChangeFile.has`."""

_Time = Annotated[DurationS, AfterValidator(_within)]


class ChangeFile(FileModel):
    """One change as written in a file. Properties without a key stay unchanged."""

    at: _Time = Field(description="Time since the start of the scenario, at most 1 h.")
    path: PathName = Field(description="The path that changes.")
    down: DirectionKey = Field(
        default=None, description="New rate towards the phone, or other new values of this direction."
    )
    up: DirectionKey = Field(
        default=None, description="New rate from the phone, or other new values of this direction."
    )
    rtt: DurationMs = Field(default=0.0, description="New round-trip time; half of it in each direction.")
    loss: LossKey = Field(default=0.0, description="New share of packets lost at random, or {p, r, good, bad}.")
    jitter: DurationMs = Field(default=0.0, description="New variation of the one-way delay.")
    distribution: Distribution = Field(default="uniform", description="New distribution of the jitter.")
    reorder: Percent = Field(default=0.0, description="New share of packets that skip the delay.")
    duplicate: Percent = Field(default=0.0, description="New share of packets that are duplicated.")
    queue: QueueKey = Field(default=Queue(), description="New queue.")
    interface: Literal["down", "up"] = Field(
        default=_UNSAID,
        description="down: switch the phone's interface off. As on Android, its address, routes, rules and MPTCP end "
        "point are removed, and TCP sockets of the address are closed. up: restore all of them.",
    )
    radio: Literal["off", "on"] = Field(
        default=_UNSAID,
        description="off: the path loses every packet at the access point, and the phone's interface stays up; on: "
        "the path works again.",
    )
    access_point: Literal["new"] = Field(
        default=_UNSAID,
        description="new: the interface goes down; after 'gone' it comes up with another address, the radio on and "
        "the other new values in force. Connections from the old address are dead.",
    )
    gone: _Time = Field(
        default=DEFAULT_GONE_S, description="Time without an access point; only with access_point, default: 3 s."
    )
    route: Literal["default"] = Field(
        default=_UNSAID, description="The phone's default route uses this path from now on."
    )
    multipath: Literal["on", "off", "backup"] = Field(
        default=_UNSAID,
        description="Use of the interface by kernel Multipath TCP. off: close its subflows; backup: use them only if "
        "no other subflow works. The cell records if that had no effect.",
    )
    over: _Time = Field(
        default=0.0,
        description="Duration of a change in steps. Not for queue, distribution, burst losses, traces and words.",
    )
    steps: int = Field(
        default=0, ge=2, le=1000, description="Number of steps; the first is at 'at', the last after 'over'."
    )
    every: _Time = Field(default=0.0, description="Interval at which the change is repeated.")
    until: _Time = Field(default=0.0, description="Time after which the change is not repeated.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for problem in self._problems():
            raise ValueError(problem)
        return self

    def _problems(self) -> Iterator[str]:
        effects = [*_VALUES, *_PRESENCE, "route", "multipath"]
        if not self.has(*effects):
            yield f"changes nothing: one of {', '.join(effects)} is needed"
        present = [name for name in _PRESENCE if self.has(name)]
        if len(present) > 1:
            yield f"{' and '.join(present)} in one change: only one of them is allowed"
        if self.has("gone") and not self.has("access_point"):
            yield "'gone' is the time without an access point: it needs 'access_point'"
        for key, other in (("over", "steps"), ("every", "until")):
            if self.has(key) != self.has(other):
                there, lacking = (key, other) if self.has(key) else (other, key)
                yield f"'{there}' without '{lacking}': give both or none"
        yield from self._problems_of_steps()
        yield from self._problems_of_repetition()

    def _problems_of_steps(self) -> Iterator[str]:
        if not self.has("over"):
            return
        if not self.over:
            yield "over 0 s: must be more than 0"
        sudden = [name for name in ("queue", "distribution", *_PRESENCE, "route", "multipath") if self.has(name)]
        if sudden or not self.has(*_GRADUAL):
            subject = f"'{sudden[0]}' cannot" if sudden else "nothing here can"
            yield f"{subject} change in steps: only {', '.join(_GRADUAL)} can"

    def _problems_of_repetition(self) -> Iterator[str]:
        if not self.has("every"):
            return
        every = format_duration_s(self.every)
        if not self.every:
            yield "every 0 s: must be more than 0"
        if self.until < self.at + self.every:
            until, second = format_duration_s(self.until), format_duration_s(self.at + self.every)
            yield f"until {until}: every {every} needs a second time, at {second}"
        if self.every <= self.lasts_s:
            yield f"every {every}, but one time lasts {format_duration_s(self.lasts_s)}: they overlap"

    def has(self, *names: str) -> bool:
        """Return whether the file gives at least one of these keys for the change."""
        return not self.model_fields_set.isdisjoint(names)

    @property
    def lasts_s(self) -> float:
        """Duration of one occurrence of the change, seconds."""
        return self.over if self.has("over") else self.gone if self.has("access_point") else 0.0

    def times_s(self) -> list[float]:
        """Return the start of each occurrence of the change, seconds since the scenario started."""
        if not self.has("every"):
            return [self.at]
        count = int((self.until - self.at) / self.every + 1e-9) + 1
        return [round(self.at + index * self.every, 6) for index in range(count)]


@dataclass(frozen=True)
class Misplaced:
    """Problem of a change that is impossible at its time."""

    entry: int
    """Index in the list ``changes``, from 0."""
    text: str


def spread(
    paths: Mapping[PathName, PathCondition], changes: Sequence[ChangeFile], traces: Path
) -> tuple[tuple[Moment, ...], list[Misplaced]]:
    """Expand changes into moments. Return the moments in the order of time, and the changes that are impossible.

    Args:
        paths: initial condition of each path.
        changes: changes as written in a file.
        traces: folder of the trace files.
    """
    count = sum(len(change.times_s()) * max(change.steps, 1) for change in changes)
    if count > MAX_MOMENTS:
        entry = max(range(len(changes)), key=lambda i: len(changes[i].times_s()) * max(changes[i].steps, 1))
        return (), [Misplaced(entry, f"the changes are {count} moments: at most {MAX_MOMENTS} are allowed")]
    new_values = [settings(change, traces) for change in changes]
    overlaps = list(dict.fromkeys(_overlaps(changes, new_values)))
    if overlaps:
        return (), overlaps
    states = {path: _PathState(path, condition) for path, condition in paths.items()}
    moments: list[Moment] = []
    misplaced: dict[int, Misplaced] = {}
    for at_s, entry, stage in sorted(_stages(changes)):
        try:
            moments.append(states[changes[entry].path].happen(at_s, changes[entry], new_values[entry], stage))
        except ValueError as error:
            misplaced.setdefault(entry, Misplaced(entry, str(error)))  # report only the first occurrence
    return tuple(moments), list(misplaced.values())


def _stages(changes: Sequence[ChangeFile]) -> Iterator[tuple[float, int, int]]:
    """Yield (time in seconds, index of the change, stage) of every moment.

    For a change in steps, the stage is the number of the step, from 0. For a change of the access point, stage 0 is
    the loss of the old access point, and stage 1 the new one. All other changes have only stage 0.
    """
    for entry, change in enumerate(changes):
        stages = change.steps if change.has("over") else 2 if change.has("access_point") else 1
        for begin in change.times_s():
            for stage in range(stages):
                yield round(begin + change.lasts_s * stage / max(stages - 1, 1), 6), entry, stage


def _overlaps(changes: Sequence[ChangeFile], new_values: Sequence[Sequence[Setting]]) -> Iterator[Misplaced]:
    """Yield, for each property of each path, the first overlap in time of two changes."""
    claims: dict[tuple[PathName, str], list[tuple[float, float, int, str]]] = {}
    for entry, change in enumerate(changes):
        properties = {name: f"its {name}" for name in ("route", "multipath") if change.has(name)}
        properties |= {
            f"{setting.way} {setting.attribute}": f"its {setting.key.replace('.', ' ')}"
            for setting in new_values[entry]
        }
        if change.has(*_PRESENCE):
            properties["presence"] = "whether it is there"
        for name, words in properties.items():
            spans = [(at_s, at_s + change.lasts_s, entry, words) for at_s in change.times_s()]
            claims.setdefault((change.path, name), []).extend(spans)
    for (path, _), spans in claims.items():
        spans.sort()
        end, owner = -1.0, -1
        for begin, last, entry, words in spans:
            if begin <= end and entry != owner:
                when, other = format_duration_s(begin), min(entry, owner)
                text = f"overlaps with changes[{other}]: both change {path}, {words}, at {when}"
                yield Misplaced(max(entry, owner), text)
                break
            if last >= end:
                end, owner = last, entry


@dataclass
class _PathState:
    """State of a path after the changes so far."""

    path: PathName
    condition: PathCondition
    up: bool = True
    """The phone's interface is up."""
    lit: bool = True
    """The radio is on."""
    begun: dict[tuple[Way, str], Any] = field(default_factory=dict)
    """Values before the first step of the latest change in steps, by direction and attribute."""

    def happen(self, at_s: float, change: ChangeFile, new_values: Sequence[Setting], stage: int) -> Moment:
        """Apply one stage of a change to the path; return the stage as a moment.

        Raises:
            ValueError: the change is impossible.
        """
        when = format_duration_s(at_s)
        self._check(change, when)
        last = not change.has("access_point") or stage == 1
        before = self.condition
        if last:
            self.condition = self._changed(change, new_values, stage, when)
        access_point: Literal["lost", "new", ""] = ""
        if change.has("access_point"):
            access_point = "new" if last else "lost"
        if change.has("interface"):
            self.up = change.interface == "up"
        if change.has("radio"):
            self.lit = change.radio == "on"
        if access_point == "new":
            self.lit = True  # the new access point is in range
        reshaped = self.condition != before
        return Moment(
            at_s=at_s,
            path=self.path,
            condition=self.condition,
            reshaped=reshaped,
            interface=change.interface,
            radio=change.radio,
            access_point=access_point,
            default_route=change.has("route") and last,
            multipath=change.multipath if last else "",
            text=_words(change, new_values, access_point, self.condition if last else None),
        )

    def _check(self, change: ChangeFile, when: str) -> None:
        if change.has("interface") and (change.interface == "up") == self.up:
            raise ValueError(
                f"interface {change.interface} at {when}: the interface of {self.path} is {change.interface} already"
            )
        if change.has("radio") and (change.radio == "on") == self.lit:
            raise ValueError(f"radio {change.radio} at {when}: the radio of {self.path} is {change.radio} already")
        needs = next((n for n in ("access_point", "route", "multipath") if change.has(n)), "")
        if needs and not self.up:
            raise ValueError(f"{needs} at {when}: the interface of {self.path} is down then")

    def _changed(self, change: ChangeFile, new_values: Sequence[Setting], stage: int, when: str) -> PathCondition:
        values: dict[Way, dict[str, Any]] = {"down": {}, "up": {}}
        for setting in new_values:
            value = self._step(setting, change, stage, when) if change.has("over") else setting.value
            values[setting.way][setting.attribute] = value
        down, up = (replace(self.condition.way(direction), **values[direction]) for direction in WAYS)
        condition = PathCondition(down=down, up=up)
        for problem in condition.problems():
            raise ValueError(f"at {when}: {problem}")
        return condition

    def _step(self, setting: Setting, change: ChangeFile, stage: int, when: str) -> Any:  # noqa: ANN401 - as it has it
        """Return the value after step `stage`: linear from the value before the change to the end value, of `setting`.

        Raises:
            ValueError: the value cannot change in steps.
        """
        attribute = (setting.way, setting.attribute)
        if stage == 0:
            self.begun[attribute] = getattr(self.condition.way(setting.way), setting.attribute)
        begin, target = self.begun[attribute], setting.value
        if begin == target:
            return target
        if setting.attribute == "rate_kbps" and (begin is None or target is None):
            raise ValueError(f"at {when}: an unlimited rate cannot change in steps")
        if not (isinstance(begin, float) and isinstance(target, float)):
            text = f"at {when}: '{setting.key.replace('.', ' ')}' cannot change in steps: only numbers can"
            raise ValueError(text)  # noqa: TRY004 - what the file says cannot happen
        value = begin + (target - begin) * (stage + 1) / change.steps
        if setting.attribute == "delay_ms":
            return round(2 * value, 6) / 2  # half of a rounded RTT, because a file gives the RTT
        return round(value, 6)


def _words(
    change: ChangeFile, new_values: Sequence[Setting], access_point: str, condition: PathCondition | None
) -> str:
    words = [f"{name} {getattr(change, name)}" for name in ("interface", "radio", "multipath") if change.has(name)]
    if access_point:
        words.append("access point lost" if access_point == "lost" else "new access point")
    if condition is not None:
        if change.has("route"):
            words.append("default route")
        keys = sorted(dict.fromkeys(setting.key for setting in new_values), key=_place)
        words += [_value_words(key, condition, keys) for key in keys]
    return ", ".join(words)


def _place(key: str) -> int:
    """Return the sort key that orders the changed keys in the description of a change.

    All keys of one direction have the same sort key.
    """
    return _VALUES.index(key.partition(".")[0])


def _value_words(key: str, condition: PathCondition, keys: Sequence[str]) -> str:
    """Return a changed key with its value in `condition`: ``loss 3 %``, ``down 1 Mbit/s``, ``down loss 3 %``."""
    head, dot, inner = key.partition(".")
    if head not in WAYS:
        other = condition.up if f"down.{key}" in keys else condition.down
        value = format_duration_ms(condition.rtt_ms) if key == "rtt" else other.text(key)
        return f"{key} {value}"
    direction = condition.down if head == "down" else condition.up
    label = f"{head} {inner}" if dot and inner not in {"rate", "trace"} else head
    return f"{label} {direction.text(inner or 'rate')}"
