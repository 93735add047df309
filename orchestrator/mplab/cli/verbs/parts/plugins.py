"""List scenarios, transports, shapers, phones, proxies, services and figures, with their origin."""

from typing import Annotated

import typer

from mplab.base.errors import MplabError
from mplab.base.plugins import REGISTRIES, Plugin, Registry
from mplab.cli.options import JsonOption
from mplab.cli.output import out, print_json, table

CheckOption = Annotated[
    bool, typer.Option("--check", help="Import each plug-in; end with exit code 3 if one cannot be imported.")
]


def plugins(*, check: CheckOption = False, as_json: JsonOption = False) -> None:
    problems = {
        (registry.group, name): _problem(registry, name) if check else ""
        for registry in REGISTRIES
        for name in registry
    }
    listed = [(registry, plugin) for registry in REGISTRIES for plugin in registry.plugins.values()]
    if as_json:
        print_json([_described(registry, plugin, problems[registry.group, plugin.name]) for registry, plugin in listed])
    else:
        rows = table("kind", "name", "from", "package")
        for registry, plugin in listed:
            problem = problems[registry.group, plugin.name]
            rows.add_row(plugin.what, plugin.name, plugin.distribution, problem or plugin.module)
        out.print(rows)
    if any(problems.values()):
        raise typer.Exit(3)


def _problem(registry: Registry, name: str) -> str:
    """Return why a plug-in cannot be imported or is incomplete; "": it can be used."""
    try:
        registry.check(name)
    except MplabError as error:
        return str(error)
    return ""


def _described(registry: Registry, plugin: Plugin, problem: str) -> dict[str, str]:
    return {
        "group": registry.group,
        "kind": plugin.what,
        "name": plugin.name,
        "distribution": plugin.distribution,
        "module": plugin.module,
        "problem": problem,
    }
