"""Options of ``mptcp`` in an experiment file."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class MptcpOptions(BaseModel):
    """Options of ``mptcp`` in an experiment file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    primary: Literal["wifi", "lte"] = Field(
        default="wifi", description="the interface of the initial subflow (default route)"
    )
    mode: Literal["full-mesh", "backup"] = Field(
        default="full-mesh",
        description="full-mesh: both paths carry data; backup: the other path only when the primary fails",
    )
