"""Types of values in users' files that several models share: names, labels, host names, text that fits a pattern."""

import re
from ipaddress import ip_address
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from mplab.base.suggest import describe, show

_NAME = re.compile(r"[a-z0-9-]{1,40}")
_VARIABLE = re.compile(r"[a-z][a-z0-9_]{0,39}")


class FileModel(BaseModel):
    """Base class of the models of mappings in users' files. Instances are frozen; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


TEXT, MAPPING = "‹text›", "‹mapping›"
"""Tags of a value that can be written as text or as a mapping; they are not keys of a file."""

VIRTUAL_NAME = "virtual"
"""Name, in an experiment file, of the lab that needs no lab file."""


def is_name(text: str) -> bool:
    """Return whether `text` matches ``[a-z0-9-]{1,40}``."""
    return _NAME.fullmatch(text) is not None


def parse_name(value: object) -> str:
    """Return `value` if `is_name` accepts it. Raises ValueError."""
    if not isinstance(value, str):
        raise ValueError(f"found {describe(value)}, a name is needed: write it in quotes if it is one")  # noqa: TRY004
    if not is_name(value):
        raise ValueError(f"name {show(value)}: 1 to 40 of a-z, 0-9 and '-'{_as_name(value)}")
    return value


def _parse_variable_name(value: object) -> str:
    if isinstance(value, str) and _VARIABLE.fullmatch(value):
        return value
    raise ValueError(f"variable name {show(value)}: 1 to 40 of a-z, 0-9 and '_', a letter first, are needed")


def _as_name(text: str) -> str:
    near = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40]
    return f". Did you mean '{near}'?" if near else ""


VariableName = Annotated[
    str, BeforeValidator(_parse_variable_name), WithJsonSchema({"type": "string", "pattern": f"^{_VARIABLE.pattern}$"})
]
Name = Annotated[str, BeforeValidator(parse_name), WithJsonSchema({"type": "string", "pattern": "^[a-z0-9-]{1,40}$"})]


_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def _parse_host(value: object) -> str:
    if isinstance(value, str) and (_HOST.fullmatch(value) or is_address(value)):
        return value
    raise ValueError(f"host {show(value)}: a name or an IP address is needed, like '192.168.1.1'")


def is_address(text: str) -> bool:
    """Return whether `text` is an IP address."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether `host` is this machine, without asking a name server: a loopback address or ``localhost``."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


Host = Annotated[str, BeforeValidator(_parse_host)]


def text_like(pattern: re.Pattern[str], kind: str, needed: str) -> BeforeValidator:
    """Return a validator that accepts text that fully matches `pattern`.

    For other values it raises ValueError: ``<kind> 'found': <needed>``.
    """

    def parse(value: object) -> str:
        if isinstance(value, str) and pattern.fullmatch(value):
            return value
        raise ValueError(f"{kind} {show(value)}: {needed}")

    return BeforeValidator(parse)


def parse_format(value: object, key: str, number: int) -> int:
    """Return the format number of a file, which its key `key` gives. Raises ValueError: it is not `number`."""
    if value is True or value != number:
        raise ValueError(f"format {show(value)}: this program reads format {number}; write '{key}: {number}'")
    return number


def format_number(key: str, number: int) -> BeforeValidator:
    """Return a validator that calls `parse_format`."""
    return BeforeValidator(lambda value: parse_format(value, key, number))


def pattern_schema(pattern: re.Pattern[str]) -> WithJsonSchema:
    """Return the JSON Schema of text that fully matches `pattern`."""
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern.pattern}$"})
