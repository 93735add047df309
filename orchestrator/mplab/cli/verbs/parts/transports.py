"""List the transports, and whether this host can run them."""

from dataclasses import asdict, dataclass
from typing import Any

from mplab.base.errors import LabNotReadyError
from mplab.cli.options import JsonOption
from mplab.cli.output import out, print_json, table
from mplab.drivers.transport import DRIVERS
from mplab.userfiles.experiments.transport import SocketsFile


def transports(as_json: JsonOption = False) -> None:
    described = [_described(name) for name in DRIVERS]
    if as_json:
        print_json([asdict(transport) for transport in described])
        return
    rows = table("transport", "what it is", "options", "on this host")
    for transport in described:
        options = "; ".join(f"{name}: {_allowed(schema)}" for name, schema in transport.options.items())
        rows.add_row(transport.name, transport.title, options, transport.missing or "available")
    out.print(rows)
    common = "; ".join(f"{name}: {_allowed(schema)}" for name, schema in _common().items())
    out.print(f"\nOptions of every transport: {common}.", markup=False)


@dataclass(frozen=True)
class _Described:
    name: str
    title: str
    options: dict[str, Any]
    """Option → JSON Schema."""
    missing: str


def _described(name: str) -> _Described:
    try:
        driver = DRIVERS[name]
    except LabNotReadyError as error:
        return _Described(name, "", {}, str(error))
    model = driver.options_model
    return _Described(
        name, driver.title, model.model_json_schema()["properties"] if model else {}, driver.missing_reason()
    )


def _common() -> dict[str, Any]:
    """Return the options that every transport has: name → JSON Schema."""
    properties: dict[str, Any] = SocketsFile.model_json_schema()["properties"]
    return properties


def _allowed(schema: dict[str, Any]) -> str:
    """Return the values that the JSON Schema of an option allows, as text: ``true | false``."""
    if "anyOf" in schema:
        return next(_allowed(choice) for choice in schema["anyOf"] if choice.get("type") != "null")
    if schema.get("type") == "array":
        return f"list of {_allowed(schema['items'])}"
    if schema.get("type") == "boolean":
        return "true | false"
    if "enum" in schema:
        return " | ".join(schema["enum"])
    examples = schema.get("examples")
    return f"like {examples[0]}" if examples else str(schema.get("type", "any"))
