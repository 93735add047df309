"""``mplab scenarios``, ``mplab links``, ``mplab transports``: what an experiment file can name."""

from typing import Any

from orchestrator.catalog import LINKS_DIR, catalog
from orchestrator.cli.options import JsonOption
from orchestrator.cli.output import out, print_json, table
from orchestrator.spec.link import list_links, load_link
from orchestrator.transport import INFOS, missing_reason


def scenarios(as_json: JsonOption = False) -> None:
    """List the app scenarios with their parameters."""
    found = catalog().scenarios
    if as_json:
        print_json(
            [
                {
                    "name": name,
                    "title": s.title,
                    "needs_ui": s.needs_ui,
                    "parameters": s.parameters.model_json_schema(),
                }
                for name, s in found.items()
            ]
        )
        return
    rows = table("scenario", "what it does", "parameters")
    for name, scenario in found.items():
        fields = scenario.parameters.model_fields
        rows.add_row(name, scenario.title, ", ".join(fields))
    out.print(rows)


def links(as_json: JsonOption = False) -> None:
    """List the link conditions."""
    found = [load_link(name, LINKS_DIR) for name in list_links(LINKS_DIR)]
    if as_json:
        print_json([link.to_json() for link in found])
        return
    rows = table("link", "WiFi", "LTE", "source")
    for link in found:
        rows.add_row(link.name, str(link.wifi), str(link.lte), link.source)
    out.print(rows)


def transports(as_json: JsonOption = False) -> None:
    """List the transports, and whether this host can run them."""
    described = [
        {
            "name": info.name,
            "title": info.title,
            "options": info.options_model.model_json_schema()["properties"] if info.options_model else {},
            "missing": missing_reason(info.name),
        }
        for info in INFOS.values()
    ]
    if as_json:
        print_json(described)
        return
    rows = table("transport", "what it is", "options", "on this host")
    for info in INFOS.values():
        properties = info.options_model.model_json_schema()["properties"] if info.options_model else {}
        options = "; ".join(f"{name}: {_allowed(schema)}" for name, schema in properties.items())
        rows.add_row(info.name, info.title, options, missing_reason(info.name) or "available")
    out.print(rows)


def _allowed(schema: dict[str, Any]) -> str:
    """The values that a JSON Schema allows, for people."""
    if "anyOf" in schema:
        return next(_allowed(one) for one in schema["anyOf"] if one.get("type") != "null")
    if schema.get("type") == "array":
        return f"list of {_allowed(schema['items'])}"
    if schema.get("type") == "boolean":
        return "true | false"
    return " | ".join(schema["enum"])
