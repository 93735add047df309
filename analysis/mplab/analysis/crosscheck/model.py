"""Define flows, the fields of flows to compare, and the documented reasons why two tools report different numbers.

"Ours" are records and values of mptrace, "theirs" those of the tool that it is compared with.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

Value: TypeAlias = float | int | str | bool | None
Sides = tuple[Value, Value]
Endpoint = tuple[str, int]

WAYS = ("up", "down")
NOTHING = frozenset({"", "NA"})
"""Notations of a missing value in the output of tools."""


@dataclass(frozen=True)
class FlowRecord:
    """A flow or connection as one tool reports it.

    Attributes:
        a, b: address and port of the two ends; in mptrace's records, ``a`` is the client.
        start_s: time of the first packet, Unix seconds.
        sides: name → (value for the data that ``a`` sent, value for the data that ``b`` sent).
        whole: name → value for the whole flow.
    """

    a: Endpoint
    b: Endpoint
    start_s: float
    sides: Mapping[str, Sides]
    whole: Mapping[str, Value] = field(default_factory=dict)

    @property
    def key(self) -> frozenset[Endpoint]:
        """Return the two ends as a set, which identifies the flow."""
        return frozenset((self.a, self.b))

    @property
    def text(self) -> str:
        """Return the two ends as text: ``10.0.0.2:4711 → 10.0.0.1:80``."""
        return f"{_end(self.a)} → {_end(self.b)}"

    def turned(self) -> "FlowRecord":
        """Return the same flow with ``a`` and ``b``, and the values of their data, swapped."""
        return FlowRecord(self.b, self.a, self.start_s, {n: (y, x) for n, (x, y) in self.sides.items()}, self.whole)


@dataclass(frozen=True)
class Pair:
    """The records of one flow by mptrace and by the tool.

    ``side`` selects the values of the data that ``a`` sent (0) or ``b`` sent (1), or of the whole flow (None).
    """

    ours: FlowRecord
    theirs: FlowRecord
    side: int | None = None

    def our(self, name: str, *, other: bool = False) -> float:
        """Return mptrace's number ``name`` for `side`, or with ``other`` for the other side; 0 when it is missing."""
        return self._number(self.ours, name, other=other)

    def their(self, name: str, *, other: bool = False) -> float:
        """Return the tool's number ``name`` for `side`, or with ``other`` for the other side; 0 when it is missing."""
        return self._number(self.theirs, name, other=other)

    def _number(self, record: FlowRecord, name: str, *, other: bool) -> float:
        if self.side is None or name in record.whole:
            value = record.whole.get(name)
        else:
            value = record.sides.get(name, (None, None))[1 - self.side if other else self.side]
        return float(value) if isinstance(value, int | float) else 0.0


@dataclass(frozen=True)
class Definition:
    """A reason why two correct numbers can differ; ``fits`` returns whether a pair differs for this reason."""

    name: str
    text: str
    fits: Callable[[Pair], bool]


@dataclass(frozen=True)
class ComparedField:
    """A quantity that mptrace (``ours``) and the tool (``theirs``) report, by its names in their records.

    ``tolerance`` is absolute, ``relative`` is a fraction of the larger number; the larger of the two limits applies.
    The field is skipped for a flow for which one of the tools has no value.
    """

    ours: str
    theirs: str
    tolerance: float = 0.0
    relative: float = 0.0
    definitions: tuple[Definition, ...] = ()


@dataclass(frozen=True)
class Difference:
    """Different values of mptrace and the tool for the same field of a flow, which no definition explains."""

    flow: str
    field: str
    theirs_field: str
    ours: Value
    theirs: Value


@dataclass
class CrossCheckReport:
    """Result of the comparison of a tool with mptrace."""

    tool: str
    flows: int = 0
    """Number of flows that both tools report."""
    agreed: Counter[str] = field(default_factory=Counter)
    """Field → number of compared values that agree."""
    explained: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(field, name of a definition) → number of deviations that the definition explains."""
    differences: list[Difference] = field(default_factory=list)
    only_ours: list[str] = field(default_factory=list)
    only_theirs: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Sentences about conversions of the captures, and about connections that could not be compared."""
    definitions: dict[str, str] = field(default_factory=dict)
    """Name → text of the definitions that explain a deviation."""

    @property
    def agree(self) -> bool:
        """Return whether there are neither unexplained deviations nor unmatched flows."""
        return not (self.differences or self.only_ours or self.only_theirs)

    @cached_property
    def fields(self) -> Sequence[str]:
        """Return the names of the compared fields: those that agree, then explained ones, then different ones."""
        return list(
            dict.fromkeys((*self.agreed, *(f for f, _ in self.explained), *(d.field for d in self.differences)))
        )


def _end(endpoint: Endpoint) -> str:
    address, port = endpoint
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def number(text: str) -> Value:
    """Parse an integer or decimal number. Return None for a missing value, and any other text unchanged."""
    text = text.strip()
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d*\.\d+", text):
        return float(text)
    return None if text in NOTHING else text


def rst_payload(fits: Callable[[Pair], bool]) -> Definition:
    """Return the definition "mptrace leaves out the payload of RST segments"; ``fits`` as in `Definition`."""
    return Definition(
        "rst-payload", "mptrace leaves out the payload of segments with RST: it is no data of the stream.", fits
    )


DUPLICATE_PACKETS = Definition(
    "duplicate-packets",
    "Two packets have the same bytes, IP identification included: mptrace takes them for one that the capture holds "
    "twice and counts it once.",
    lambda pair: float(str(pair.ours.whole.get("duplicates") or 0)) > 0,
)
