"""List the app scenarios with parameters and metrics, or run a single one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from mplab.analysis.scores.plugins import load, register
from mplab.base.errors import InputError
from mplab.base.paths import WLAN
from mplab.cli.command import VerbApp
from mplab.cli.options import JsonOption, LinkOrFileOption, TransportOption, check_name, complete_scenarios, link_entry
from mplab.cli.output import duration, err, out, output_folder, print_json, table
from mplab.cli.run_display import RunDisplay
from mplab.cli.verb_loader import add_verb
from mplab.drivers.transport import default_over
from mplab.drivers.transport import names as transport_names
from mplab.lab.catalog import catalog, programs_of, scenario_names
from mplab.lab.sensitivity import sensitivity_experiment
from mplab.run.alone import check_alone
from mplab.scenarios.base import AnyScenario
from mplab.userfiles.experiments.explain import parameters_of
from mplab.userfiles.strict.check import Checker
from mplab.userfiles.strict.yaml import parse_yaml

app = VerbApp(invoke_without_command=True)
CHECKS = Path("runs") / "checks"
_BETTER = {"lower": "less", "higher": "more", "neither": "neither"}

ScenarioArgument = Annotated[
    str, typer.Argument(help="Name of the scenario.", show_default=False, autocompletion=complete_scenarios)
]

add_verb(app, "mplab.cli.verbs.parts.scenarios.record")


@app.callback()
def list_all(
    context: typer.Context,
    short: Annotated[bool, typer.Option("--short", help="Print one line for each scenario.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the app scenarios: parameters, metrics with units and sources, services, time limit, needs."""
    if context.invoked_subcommand is not None:
        return
    scenarios = describe_all()
    if as_json:
        print_json(scenarios)
    elif short:
        rows = table("scenario", "what it does", "parameters", "services", "limit")
        for scenario in scenarios:
            names = ", ".join(parameter["name"] for parameter in scenario["parameters"])
            limit = _limit(scenario["time_limit_s"])
            rows.add_row(scenario["name"], scenario["title"], names, ", ".join(scenario["services"]), limit)
        out.print(rows)
    else:
        for scenario in scenarios:
            _print(scenario)


@app.command()
def show(name: ScenarioArgument, as_json: JsonOption = False) -> None:
    """Show one scenario: parameters, metrics with units and sources, services, time limit, needs."""
    check_name("scenario", name, catalog().scenarios)
    described = next(scenario for scenario in describe_all() if scenario["name"] == name)
    if as_json:
        print_json(described)
    else:
        _print(described)


@app.command()
def check(
    name: ScenarioArgument,
    *,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter",
            "-p",
            metavar="KEY=VALUE",
            help="Set a parameter of the scenario, as in an experiment file; may be repeated.",
        ),
    ] = None,
    transport: TransportOption = "",
    link: LinkOrFileOption = "baseline",
    seed: Annotated[int, typer.Option(help="Use this seed for all random numbers.", min=0, max=2**32 - 1)] = 1,
    folder: Annotated[
        Path,
        typer.Option("--runs", help="Write the evidence to this folder.", metavar="FOLDER", callback=output_folder),
    ] = CHECKS,
    as_json: JsonOption = False,
) -> None:
    """Run a single scenario once, without captures, and print its scores."""
    check_name("scenario", name, catalog().scenarios)
    transport = transport or default_over(WLAN)
    check_name("transport", transport, transport_names())
    parameters = read_parameters(name, parameter or ())
    condition = link_entry(link)
    with RunDisplay() as display:
        result = check_alone(
            name,
            parameters,
            transport=transport,
            link=condition,
            seed=seed,
            folder=folder,
            watch=display.watch(),
        )
    if as_json:
        print_json(result.to_json())
    else:
        rows = table("metric", "", "value", "unit", "better")
        for row in result.scores:
            rows.add_row(row.title, " · ".join(row.labels.values()), f"{row.value:.4g}", row.unit, row.better)
        if result.scores:
            out.print(rows)
        for text in result.reasons:
            err.print(f"{result.outcome}: {text}", style="red", markup=False, soft_wrap=True)
        for text in result.warnings:
            err.print(f"! {text}", style="yellow", markup=False, soft_wrap=True)
        out.print(f"Evidence: {result.directory}", markup=False, soft_wrap=True)
    raise typer.Exit(0 if result.ok else 1)


@app.command()
def sensitivity(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Names of scenarios. By default, all are used.",
            show_default=False,
            autocompletion=complete_scenarios,
        ),
    ] = None,
) -> None:
    """Print an experiment file: does each metric respond to a bad link? From the sensitivity.yaml of the scenarios."""
    for name in names or ():
        check_name("scenario", name, catalog().scenarios)
    out.print(sensitivity_experiment(names or scenario_names()), end="", markup=False, highlight=False, soft_wrap=True)


def read_parameters(name: str, texts: Sequence[str]) -> dict[str, object]:
    """Parse texts of the form ``key=value``, and check that the scenario `name` accepts them as its parameters.

    A value is written as in an experiment file. Return key → value, both as in `texts`: defaults are not filled in.

    Raises:
        InputError: a pair is not ``key=value``, or the scenario refuses it; one line for each problem.
    """
    lines = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not (equals and key.strip()) or "\n" in text:
            raise InputError(f"--parameter {text!r}: KEY=VALUE is needed, like --parameter pause='1 s'")
        lines.append(f"{key.strip()}: {value.strip()}")
    document = parse_yaml(("\n".join(lines) or "{}").encode(), "--parameter")
    checker = Checker(document)
    checker.model(catalog().scenarios[name].parameters, document.data)
    checker.raise_problems()
    data: dict[str, object] = document.data
    return data


def describe_all() -> list[dict[str, Any]]:
    """Return the description of every scenario in the form of ``--json``.

    Raises:
        MetricConflictError: two scenarios define one metric name differently.
    """

    plugins = {name: load(name) for name in catalog().scenarios}
    register(plugins.values())
    return [
        {
            **_describe(scenario),
            "metrics": [
                {
                    "name": metric.name,
                    "title": metric.title,
                    "unit": metric.unit,
                    "better": metric.better,
                    "limits": list(metric.limits),
                    "labels": list(metric.labels),
                    "headline": metric.headline,
                    "source": metric.source,
                }
                for metric in plugins[name].metrics
            ],
        }
        for name, scenario in catalog().scenarios.items()
    ]


def _describe(scenario: AnyScenario) -> dict[str, Any]:
    try:
        defaults = scenario.parameters()
    except ValidationError:  # some parameters have no default
        limit_s = estimate_s = None
    else:
        limit_s, estimate_s = scenario.time_limit_s(defaults), scenario.estimate_s(defaults)
    return {
        "name": scenario.name,
        "title": scenario.title,
        "needs_ui": scenario.needs_ui,
        "cpus": scenario.cpus,
        "services": list(scenario.services),
        "programs": sorted({program.name for program in programs_of(scenario)}),
        "time_limit_s": limit_s,
        "estimate_s": estimate_s,
        "parameters": [parameter.to_json() for parameter in parameters_of(scenario.parameters)],
        "schema": scenario.parameters.model_json_schema(),
    }


def _print(scenario: dict[str, Any]) -> None:
    out.print(f"{scenario['name']}  {scenario['title']}", style="bold", markup=False)
    needs = [
        f"{scenario['cpus']:g} processors",
        *(["a browser"] if scenario["needs_ui"] else []),
        *scenario["programs"],
    ]
    services = ", ".join(scenario["services"]) or "only web sites and files"
    out.print(
        f"  needs {', '.join(needs)}; services: {services}; limit: {_limit(scenario['time_limit_s'])}", markup=False
    )
    rows = table("  parameter", "type", "units", "default", "")
    for parameter in scenario["parameters"]:
        about = " ".join(part for part in (parameter["description"], _bracketed(parameter["allowed"])) if part)
        rows.add_row(
            f"  {parameter['name']}", parameter["type"], parameter["units"], _default(parameter["default"]), about
        )
    out.print(rows)
    rows = table("  metric", "", "unit", "better", "per", "source")
    for metric in scenario["metrics"]:
        rows.add_row(
            f"  {metric['name']}",
            metric["title"],
            metric["unit"],
            _BETTER[metric["better"]],
            ", ".join(metric["labels"]),
            metric["source"],
        )
    out.print(rows)
    out.print()


def _bracketed(text: str) -> str:
    return f"({text})" if text else ""


def _default(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(_default(item) for item in value) or "none"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _limit(seconds: float | None) -> str:
    return "by its parameters" if seconds is None else duration(seconds)
