"""Validation, writing and reading of all records of a run directory.

Nothing in a run directory is trusted: names must have the form of names, numbers must be finite. Unknown keys, which
other versions of mplab write, are ignored. Most keys may be missing: an older version wrote the record, or the run
ended before it could write them.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from mplab.base.errors import InputError
from mplab.base.files import write_new
from mplab.base.paths import RMNET, WLAN


def label_of(value: object) -> object:
    """Return the label of the scenario, transport or link in a cell's record.

    Older versions wrote the whole object, with its label or name, in place of the label.
    """
    return value.get("label") or value.get("name") if isinstance(value, dict) else value


def upgrade_lab(value: object) -> object:
    """Return the lab in a record as a mapping.

    In an older record, the lab is missing, is only the name of its kind, or has no ``same_clock``.
    """
    if isinstance(value, BaseModel):
        return value
    lab = {"kind": value} if isinstance(value, str) else value if isinstance(value, Mapping) else {}
    return {"same_clock": True, **lab} if lab.get("kind") == "virtual" else lab


def upgrade_link_proof(value: object) -> object:
    """Return a path's link proof with the key ``where``, the name of its shaper. Older records used only ``linkem``."""
    return {"where": "linkem", **value} if isinstance(value, Mapping) else value


def upgrade_transport(found: object) -> object:
    """Return a transport's record with the keys ``paths`` and ``sessions``.

    Older records lack these keys. Their values then follow from the transport's name.
    """
    if not isinstance(found, dict):
        return found
    name = str(found.get("name", ""))
    single = RMNET if name == "sptcp-lte" else WLAN
    paths = [single] if name.startswith("sptcp") else [WLAN, RMNET]
    known = {key: value for key, value in found.items() if value is not None}
    return {"paths": paths, "sessions": name == "mpflex", **known}


CONFIG = ConfigDict(extra="ignore", allow_inf_nan=False)
"""Configuration of the dataclasses that are part of a record."""


class Record(BaseModel):
    """Base class of immutable records; unknown keys are ignored.

    A field cannot be named like a Python keyword: such a key is the alias of a field with another name.
    """

    model_config = ConfigDict(
        **CONFIG, frozen=True, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )


class OpenRecord(Record):
    """Base class of immutable records that keep unknown keys."""

    model_config = ConfigDict(extra="allow")

    def content(self) -> dict[str, JsonValue]:
        """Return the keys of the record that were read or set, with their values, as a JSON object."""
        return _JSON_OBJECT.validate_python(self.model_dump(mode="json", exclude_unset=True))


RecordName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,80}$")]
"""Name of an experiment, scenario, transport or link condition, used in file names. New names are shorter."""

RunId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}$")]
CELL_ID = r"^[A-Za-z0-9_-]{1,240}$"
CellId = Annotated[str, StringConstraints(pattern=CELL_ID)]
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""Integer that fits the 64-bit columns of tables."""


def _encodable(value: object) -> object:
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_encodable)]
"""Text for people, from any program; characters that UTF-8 cannot encode become "?"."""


def _is_empty(value: object) -> bool:
    return value in (None, "", {}, [], ())


OMIT_EMPTY = Field(exclude_if=_is_empty)
"""Field option: the key is written only if its value is not empty."""

OMIT_ZERO = Field(exclude_if=lambda value: value == 0)
"""Field option: the key is written only if its value is not 0."""


def _mapping_or_nothing(value: object) -> object:
    return value if isinstance(value, Mapping | BaseModel) else {}


def _number_or_nothing(value: object) -> object:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


LENIENT = BeforeValidator(_mapping_or_nothing)
"""Validator that reads a value of any other type than a mapping as an empty mapping."""

Settings = Annotated[dict[str, JsonValue], LENIENT]
"""Free content: parameters of a scenario, options of a transport, facts about a phone."""

Quantity = Annotated[float | None, BeforeValidator(_number_or_nothing)]
"""Measured or requested number; values of another type become None."""

_JSON_OBJECT: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])

Model = TypeVar("Model", bound=BaseModel)


def json_of(record: object) -> dict[str, JsonValue]:
    """Return a record, or a dataclass that is part of one, as a JSON object."""
    return _JSON_OBJECT.validate_python(TypeAdapter(type(record)).dump_python(record, mode="json"))


def utc_now() -> str:
    """Return the current time in UTC: ``2026-03-01T12:00:00Z``."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def write_record(path: Path, record: BaseModel) -> None:
    """Write `record` as JSON, atomically, to a new file.

    Raises:
        MplabError: the file exists already, or cannot be written ("disk full: …").
    """
    write_new(path, (record.model_dump_json(indent=1) + "\n").encode())


def read_record(path: Path, model: type[Model]) -> Model:
    """Return the record in `path`. Raises InputError: the file is missing, or does not hold such a record."""
    try:
        return model.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        problem = f"key '{key}' is missing" if first["type"] == "missing" else f"{key}: {first['msg']}"
        raise InputError(f"{path}: not a {model.__name__} of format 1: {problem}") from error
