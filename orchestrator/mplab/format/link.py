"""Link conditions: the paths over WiFi and LTE, and their changes while a scenario runs."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Literal, NotRequired, Self, cast

from pydantic import Field, model_serializer, model_validator
from pydantic.dataclasses import dataclass
from typing_extensions import TypedDict

from mplab.base.paths import INTERFACES
from mplab.format.direction import WAYS, DirectionJson, Queue
from mplab.format.path import OPEN, PathCondition
from mplab.format.record import CONFIG, RecordName
from mplab.format.units import format_size

INTERFACE_TITLES = {"wlan0": "WiFi", "rmnet0": "LTE"}

PathName = Literal["wifi", "lte"]


class PathJson(TypedDict):
    """Condition of both directions of a path as written in records."""

    down: DirectionJson
    up: DirectionJson


class MomentJson(TypedDict):
    """Change of one path at one time as written in records. Properties without a key do not change."""

    at_s: float
    device: str
    text: str
    interface: NotRequired[Literal["down", "up"]]
    radio: NotRequired[Literal["off", "on"]]
    access_point: NotRequired[Literal["lost", "new"]]
    route: NotRequired[Literal["default"]]
    multipath: NotRequired[Literal["on", "off", "backup"]]
    down: NotRequired[DirectionJson]
    up: NotRequired[DirectionJson]


class LinkConditionJson(TypedDict):
    """Link condition as written in records."""

    name: str
    title: NotRequired[str]
    source: NotRequired[str]
    paths: dict[str, PathJson]
    """Paths by the phone's interface."""
    core_rtt_ms: NotRequired[float]
    changes: NotRequired[list[MomentJson]]


@dataclass(frozen=True, config=CONFIG)
class Moment:
    """Change of one path at one time while a scenario runs."""

    at_s: Annotated[float, Field(ge=-1e9, le=1e9)]
    """Seconds since the scenario started."""
    path: PathName
    condition: PathCondition = OPEN
    """Condition of the path from this time on, while its radio is on. A record has it only if `reshaped` is True."""
    reshaped: bool = False
    """True if `condition` differs from the path's condition before."""
    interface: Literal["down", "up", ""] = ""
    radio: Literal["off", "on", ""] = ""
    access_point: Literal["lost", "new", ""] = ""
    default_route: bool = False
    multipath: Literal["on", "off", "backup", ""] = ""
    text: str = ""
    """Description for people: ``interface down``, ``loss 3 %``."""

    @property
    def device(self) -> str:
        """Interface of the phone that the path starts at: ``wlan0``."""
        return INTERFACES[self.path]

    @model_validator(mode="before")
    @classmethod
    def _from_json(cls, data: object) -> object:
        """Convert input in the form of `to_json` to field values; return other input unchanged."""
        if not isinstance(data, dict) or "device" not in data:
            return data
        device = data["device"]
        values = {**data, "path": next((path for path, name in INTERFACES.items() if name == device), device)}
        if reshaped := {direction: data[direction] for direction in WAYS if direction in data}:
            values |= {"condition": reshaped, "reshaped": True}
        return {**values, "default_route": data.get("route") == "default"}

    @model_serializer
    def to_json(self) -> MomentJson:
        """Return the change as in manifest.json: only the properties that change."""
        values = {
            "interface": self.interface,
            "radio": self.radio,
            "access_point": self.access_point,
            "route": "default" if self.default_route else "",
            "multipath": self.multipath,
        }
        record: MomentJson = {"at_s": self.at_s, "device": self.device, "text": self.text}
        changed = {name: value for name, value in values.items() if value}
        return cast("MomentJson", {**record, **changed, **(_ways(self.condition) if self.reshaped else {})})


@dataclass(frozen=True, config=CONFIG)
class LinkCondition:
    """Condition of both paths of a phone."""

    name: RecordName
    title: str = ""
    source: str = ""
    """Source of the numbers: a paper with its table, a measurement."""
    wifi: PathCondition = OPEN
    lte: PathCondition = OPEN
    core_rtt_ms: float = 0.0
    """Round-trip time between the proxy and every server, in addition to each server's own delay."""
    changes: tuple[Moment, ...] = ()
    """Changes while a scenario runs, in the order of their times."""
    extends: str = ""
    """Condition that this one extends; "": none. Not recorded."""

    def paths(self) -> dict[str, PathCondition]:
        """Return interface of the phone (``wlan0``, ``rmnet0``) → condition of its path."""
        return {"wlan0": self.wifi, "rmnet0": self.lte}

    def with_queue(self, queue: Queue) -> Self:
        """Return the condition with queues of the length of `queue`, from the start and after each change.

        Its name ends in ``-q50`` for 50 packets, or in ``-q150kb`` for 150 kB.
        """
        size = str(queue.length) if queue.unit == "packets" else format_size(queue.length).lower().replace(" ", "")
        moments = [
            replace(moment, condition=moment.condition.with_queue(queue)) if moment.reshaped else moment
            for moment in self.changes
        ]
        return replace(
            self,
            name=f"{self.name}-q{size.replace('.', 'p')}",
            title=f"{self.title} (queue {replace(Queue(), unit=queue.unit, length=queue.length)})",
            wifi=self.wifi.with_queue(queue),
            lte=self.lte.with_queue(queue),
            changes=tuple(moments),
        )

    @property
    def queues(self) -> bool:
        """Return whether packets can wait: a direction has a rate or a trace, now or after a change."""
        ways = [path.way(way) for _, path in self.conditions() for way in WAYS]
        return any(way.rate_kbps is not None or way.trace is not None for way in ways)

    @property
    def stripped(self) -> frozenset[str]:
        """Interfaces of the phone behind whose paths a middlebox removes the options of Multipath TCP."""
        return frozenset(interface for interface, path in self.paths().items() if path.strips_multipath)

    def conditions(self) -> Iterator[tuple[str, PathCondition]]:
        """Yield (name, condition): the initial condition of each path, then the new one after each change.

        Examples of names: ``wifi``, ``wifi at 15 s``.
        """
        yield "wifi", self.wifi
        yield "lte", self.lte
        for moment in self.changes:
            if moment.reshaped:
                yield f"{moment.path} at {moment.at_s:g} s", moment.condition

    @property
    def story(self) -> str:
        """Changes as text: ``15 s WiFi interface down; 30 s WiFi interface up``; "": there are no changes."""
        return "; ".join(
            f"{moment.at_s:g} s {INTERFACE_TITLES[moment.device]} {moment.text}" for moment in self.changes
        )

    @model_validator(mode="before")
    @classmethod
    def _from_json(cls, data: object) -> object:
        """Convert input in the form of `to_json` to field values; return other input unchanged."""
        if not isinstance(data, dict) or not isinstance(data.get("paths"), dict):
            return data
        paths = {path: data["paths"][device] for path, device in INTERFACES.items() if device in data["paths"]}
        return {**data, **paths}

    @model_serializer
    def to_json(self) -> LinkConditionJson:
        """Return the condition as in manifest.json.

        The result is ``{name, title, source, paths: {wlan0: {down, up}, rmnet0: {down, up}}}``; ``core_rtt_ms`` and
        ``changes`` (`Moment.to_json`) are added if they are not empty.
        """
        paths = {interface: _ways(path) for interface, path in self.paths().items()}
        record: LinkConditionJson = {"name": self.name, "title": self.title, "source": self.source, "paths": paths}
        if self.core_rtt_ms:
            record["core_rtt_ms"] = self.core_rtt_ms
        if self.changes:
            record["changes"] = [moment.to_json() for moment in self.changes]
        return record

    def determinants(self) -> dict[str, object]:
        """Return the values on which a cell's result may depend: paths, core RTT and changes."""
        record = self.to_json()
        extras = {key: value for key, value in record.items() if key in {"core_rtt_ms", "changes"}}
        return {**record["paths"], **extras}


def _ways(path: PathCondition) -> PathJson:
    return {"down": path.down.to_json(), "up": path.up.to_json()}


def interface_title(name: str) -> str:
    """Return the title of an interface: ``WiFi`` for ``wlan0``; other interfaces are returned unchanged."""
    return INTERFACE_TITLES.get(name, name)
