"""Settings in a lab file for the root shell of a phone."""

from pydantic import BaseModel, ConfigDict, Field

from mplab.userfiles.machine_fields import DeadMan


class PhoneShellFile(BaseModel):
    """A phone that shapes its own paths by a root shell."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: list[str] = Field(
        min_length=1, description="Opens a root shell, to be given 'sh': [adb, -s, SERIAL, shell, su, -c]."
    )
    dead_man: DeadMan = Field(15.0, description="Silence after which it takes all shaping back.")
