"""Describe the parameters of a scenario for people: type, unit, default, allowed values, description."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import BaseModel

from mplab.format.units import quantity_of

_TYPES = {"integer": "whole number", "number": "number", "boolean": "true or false", "string": "text"}


@dataclass(frozen=True)
class ParameterInfo:
    """Description of one parameter of a scenario.

    Attributes:
        name: key in the file.
        type: ``size``, ``duration``, ``whole number``, ``list of size``, ``one of h2, h1``.
        units: units of a quantity, best known first; "": it has none.
        default: default as in a file; None: the parameter is required.
        allowed: bounds of the value or of the number of entries, ``1 … 20``; "": there are none.
        description: meaning of the parameter.
    """

    name: str
    type: str
    units: str
    default: Any
    allowed: str
    description: str

    def to_json(self) -> dict[str, Any]:
        """Return the fields for ``--json``."""
        return asdict(self)


def parameters_of(model: type[BaseModel]) -> list[ParameterInfo]:
    """Return a description of every parameter (field) of `model`, in the order of the fields."""
    schema = model.model_json_schema()
    defaults = model.model_construct().model_dump(mode="json", warnings=False)
    definitions = schema.get("$defs", {})
    return [
        ParameterInfo(
            name=name,
            type=_type(entry, definitions),
            units=_units(entry, definitions),
            # A model can leave out defaults when it is dumped.
            default=defaults.get(name, entry.get("default")),
            allowed=_allowed(entry),
            description=entry.get("description", ""),
        )
        for name, entry in schema.get("properties", {}).items()
    ]


def _type(entry: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    entry = _resolved(entry, definitions)
    kind = entry.get("type", "")
    quantity = quantity_of(entry.get("pattern", ""))
    choices = [_type(choice, definitions) for choice in entry.get("anyOf", ()) if choice.get("type") != "null"]
    words = [str(value) for value in entry.get("enum", (entry["const"],) if "const" in entry else ())]
    if choices:
        return " or ".join(choices)
    if words:
        return f"one of {', '.join(words)}"
    if kind == "array":
        return f"list of {_type(entry.get('items', {}), definitions)}"
    if kind == "object":
        return f"{{{', '.join(entry.get('properties', {}))}}}"
    return quantity.kind if quantity else _TYPES.get(kind, "any")


def _units(entry: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    entry = _resolved(entry, definitions)
    for inner in (*entry.get("anyOf", ()), entry.get("items", {})):
        if units := _units(inner, definitions) if inner else "":
            return units
    quantity = quantity_of(entry.get("pattern", ""))
    return quantity.units_text if quantity else ""


def _allowed(entry: Mapping[str, Any]) -> str:
    parts = []
    for least, most, suffix in (("minimum", "maximum", ""), ("minItems", "maxItems", " of them")):
        low, high = entry.get(least), entry.get(most)
        if low is not None and high is not None:
            parts.append(f"{low:g} … {high:g}{suffix}")
        elif low is not None:
            parts.append(f"at least {low:g}{suffix}")
        elif high is not None:
            parts.append(f"at most {high:g}{suffix}")
    return ", ".join(parts)


def _resolved(entry: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = entry.get("$ref", "")
    resolved: Mapping[str, Any] = definitions[reference.rpartition("/")[2]] if reference else entry
    return resolved
