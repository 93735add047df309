"""Options of ``mpflex`` in an experiment file, and the policies (rule files) that the option `policy` names."""

import re
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from mplab.base.places import ROOT
from mplab.base.suggest import unknown
from mplab.format.units import SizeBytes
from mplab.userfiles.experiments.transport import ViaOptions

Scheduler = Literal["earliest", "minrtt", "txdelay", "roundrobin", "redundant", "backup", "single"]
Trigger = Literal["tail", "stall", "buffer"]
Feeding = Literal["late", "buffered"]

TRIGGERS: tuple[Trigger, ...] = ("tail", "stall", "buffer")
PINNED = frozenset({"backup", "single"})
"""Schedulers that use only one path as long as it works."""

POLICIES_DIR = ROOT / "mpflex" / "policies"


def policy_names() -> list[str]:
    """Return the names of the rule files that come with mpflex, sorted."""
    return sorted(path.stem for path in POLICIES_DIR.glob("*.yaml"))


def _policy_name(name: str) -> str:
    """Return `name`. Raise ValueError unless `name` has the form of a rule file's name without ``.yaml``.

    Whether the file exists is checked later, because the file can be in the folder of a run.
    """
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ValueError(unknown("policy", name, policy_names()))
    return name


Policy = Annotated[str, AfterValidator(_policy_name), WithJsonSchema({"type": "string", "enum": policy_names()})]


class MpflexOptions(ViaOptions):
    """Options of ``mpflex`` in an experiment file."""

    not_direct: ClassVar[str] = "the session of MPFlex ends at the proxy, and no origin speaks its protocol"

    scheduler: Scheduler = Field(
        default="earliest", description="scheduler, which chooses the path of a message; mpflex:NAME sets it, too"
    )
    primary: Literal["wifi", "lte"] | None = Field(
        default=None, description="path of the schedulers single and backup; default: wifi"
    )
    plain: bool = Field(default=False, description="paths without TLS, for measurements")
    reinjection: tuple[Trigger, ...] = Field(
        default=TRIGGERS, description="late messages that are copied to another path; [] for none"
    )
    policy: Policy | None = Field(
        default=None,
        description="rule file in mpflex/policies for scheduler and paths of each connection; default: none",
    )
    feeding: Feeding = Field(
        default="late",
        description="data that the TCP of a path gets: what it can send at once, or as much as its send buffer holds",
    )
    send_buffer: Annotated[SizeBytes, Field(ge=16 << 10, le=1 << 26)] | None = Field(
        default=None, description="send buffer of each path, with the feeding buffered; default: 256 KiB"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.primary is not None and self.scheduler not in PINNED:
            raise ValueError(f"scheduler '{self.scheduler}' has no 'primary' path: only single and backup have")
        if len(set(self.reinjection)) < len(self.reinjection):
            raise ValueError("'reinjection' has the same entry twice")
        if self.send_buffer is not None and self.feeding != "buffered":
            raise ValueError(f"the feeding '{self.feeding}' fills no send buffer: 'send_buffer' needs buffered")
        return self
