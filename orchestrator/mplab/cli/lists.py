"""``mplab transports``: what the phone's traffic can travel by."""

from typing import Any

from mplab.cli.options import JsonOption
from mplab.cli.output import out, print_json, table
from mplab.drivers.transport import DRIVERS


def transports(as_json: JsonOption = False) -> None:
    """List the transports, and whether this host can run them."""
    described = [
        {
            "name": info.name,
            "title": info.title,
            "options": info.options_model.model_json_schema()["properties"] if info.options_model else {},
            "missing": info.missing_reason(),
        }
        for info in DRIVERS.values()
    ]
    if as_json:
        print_json(described)
        return
    rows = table("transport", "what it is", "options", "on this host")
    for info in DRIVERS.values():
        properties = info.options_model.model_json_schema()["properties"] if info.options_model else {}
        options = "; ".join(f"{name}: {_allowed(schema)}" for name, schema in properties.items())
        rows.add_row(info.name, info.title, options, info.missing_reason() or "available")
    out.print(rows)


def _allowed(schema: dict[str, Any]) -> str:
    """The values that a JSON Schema allows, for people."""
    if "anyOf" in schema:
        return next(_allowed(one) for one in schema["anyOf"] if one.get("type") != "null")
    if schema.get("type") == "array":
        return f"list of {_allowed(schema['items'])}"
    if schema.get("type") == "boolean":
        return "true | false"
    if "enum" in schema:
        return " | ".join(schema["enum"])
    examples = schema.get("examples")
    return f"like {examples[0]}" if examples else str(schema.get("type", "any"))
