"""What is compared: flows with values per side, fields, and the definitions that tell tools apart."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

Value: TypeAlias = float | int | str | bool | None
Sides = tuple[Value, Value]
Endpoint = tuple[str, int]

WAYS = ("up", "down")


@dataclass(frozen=True)
class FlowRecord:
    """A flow or connection as one tool saw it.

    Attributes:
        a, b: its ends; in our records a is the client.
        start_s: first packet, since 1970.
        sides: per name, what was sent by a and by b.
        whole: values of the flow as a whole.
    """

    a: Endpoint
    b: Endpoint
    start_s: float
    sides: Mapping[str, Sides]
    whole: Mapping[str, Value] = field(default_factory=dict)

    @property
    def key(self) -> frozenset[Endpoint]:
        """The two ends, whichever comes first."""
        return frozenset((self.a, self.b))

    @property
    def text(self) -> str:
        """``10.0.0.2:4711 → 10.0.0.1:80``."""
        return f"{_end(self.a)} → {_end(self.b)}"

    def turned(self) -> "FlowRecord":
        """The same with the ends in the other order."""
        return FlowRecord(self.b, self.a, self.start_s, {n: (y, x) for n, (x, y) in self.sides.items()}, self.whole)


@dataclass(frozen=True)
class Pair:
    """One side of a flow in both tools (``side`` 0 or 1), or the whole flow (None)."""

    ours: FlowRecord
    theirs: FlowRecord
    side: int | None = None

    def our(self, name: str, *, other: bool = False) -> float:
        """A number of ours; 0 where there is none."""
        return self._number(self.ours, name, other=other)

    def their(self, name: str, *, other: bool = False) -> float:
        """A number of theirs; 0 where there is none."""
        return self._number(self.theirs, name, other=other)

    def _number(self, record: FlowRecord, name: str, *, other: bool) -> float:
        if self.side is None or name in record.whole:
            value = record.whole.get(name)
        else:
            value = record.sides.get(name, (None, None))[1 - self.side if other else self.side]
        return float(value) if isinstance(value, int | float) else 0.0


@dataclass(frozen=True)
class Definition:
    """Why two numbers may differ though both are right: ``fits`` says whether this pair differs in that way."""

    name: str
    text: str
    fits: Callable[[Pair], bool]


@dataclass(frozen=True)
class ComparedField:
    """One thing that both count.

    ``tolerance`` is absolute, ``relative`` by the larger of both numbers; a flow where one of the tools has no value
    is not compared.
    """

    ours: str
    theirs: str
    tolerance: float = 0.0
    relative: float = 0.0
    definitions: tuple[Definition, ...] = ()


@dataclass(frozen=True)
class Difference:
    """Two values of which one is wrong, as far as the definitions tell."""

    flow: str
    field: str
    theirs_field: str
    ours: Value
    theirs: Value


@dataclass
class CrossCheckReport:
    """What a comparison found."""

    tool: str
    flows: int = 0
    agreed: Counter[str] = field(default_factory=Counter)
    explained: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Times that a definition (its name) explained a field."""
    differences: list[Difference] = field(default_factory=list)
    only_ours: list[str] = field(default_factory=list)
    only_theirs: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was done to the captures, and what could not be compared."""
    definitions: dict[str, str] = field(default_factory=dict)
    """Texts of the definitions that were needed."""

    @property
    def agree(self) -> bool:
        """Whether nothing is unexplained."""
        return not (self.differences or self.only_ours or self.only_theirs)

    @cached_property
    def fields(self) -> Sequence[str]:
        """Every field that was compared, in order of first use."""
        return list(
            dict.fromkeys((*self.agreed, *(f for f, _ in self.explained), *(d.field for d in self.differences)))
        )


def _end(endpoint: Endpoint) -> str:
    address, port = endpoint
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
