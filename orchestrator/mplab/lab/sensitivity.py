"""Make the experiment that tests whether metrics respond to a bad link, from the ``sensitivity.yaml`` of scenarios."""

import json
from collections.abc import Iterable, Mapping

from pydantic import Field, JsonValue

from mplab.base.paths import WLAN
from mplab.base.plugins import SCENARIOS
from mplab.drivers.transport import default_over
from mplab.format.names import FileModel
from mplab.userfiles.strict.check import Checker
from mplab.userfiles.strict.yaml import load_yaml

FILE = "sensitivity.yaml"
_GOOD, _BAD = "baseline", "poor"
_HEAD: Mapping[str, JsonValue] = {
    "mplab": 1,
    "name": "sensitivity",
    "title": "Every metric on a good link and on a bad one",
    "seed": 1,
    "repetitions": 5,
    "links": [_GOOD, _BAD],
}


class Sensitivity(FileModel):
    """The ``sensitivity.yaml`` of a scenario."""

    parameters: dict[str, JsonValue] = Field(default_factory=dict, description="Of a short cell.")
    claims: dict[str, str] = Field(
        min_length=1, description="Metric → claim: better on a good link than in a bad place by 10 % or more."
    )
    unclaimed: dict[str, str] = Field(
        default_factory=dict, description="Headline metric that does not respond → the reason."
    )


def sensitivity_of(scenario: str) -> Sensitivity | None:
    """Read ``sensitivity.yaml`` of a scenario; return None if the scenario has no such file.

    Raises:
        InputError: there is no scenario of this name, or its file is wrong.
    """
    path = SCENARIOS[scenario].folder() / FILE
    if not path.exists():
        return None
    checker = Checker(load_yaml(path))
    sensitivity = checker.model(Sensitivity, checker.document.data)
    checker.raise_problems()
    return sensitivity


def sensitivity_experiment(scenarios: Iterable[str]) -> str:
    """Return the text of an experiment file: each scenario with a ``sensitivity.yaml``, on a good and on a bad link.

    Raises:
        InputError: a file is wrong.
    """
    transport = default_over(WLAN)
    sensitivities = {name: sensitivity for name in scenarios if (sensitivity := sensitivity_of(name)) is not None}
    head = "".join(f"{key}: {_flow(value)}\n" for key, value in {**_HEAD, "transports": [transport]}.items())
    uses = [{name: sensitivity.parameters} for name, sensitivity in sensitivities.items()]
    claims = [
        _claim(name, metric, text, transport)
        for name, sensitivity in sensitivities.items()
        for metric, text in sensitivity.claims.items()
    ]
    return f"{head}scenarios:\n{_items(uses)}claims:\n{_items(claims)}"


def _claim(scenario: str, metric: str, text: str, transport: str) -> Mapping[str, object]:
    return {
        "text": text,
        "metric": metric,
        "scenarios": [scenario],
        "links": [_GOOD],
        "transport": transport,
        "against": [transport],
        "against_link": _BAD,
        "gain": ["10 %", None],
    }


def _items(entries: Iterable[object]) -> str:
    return "".join(f"  - {_flow(entry)}\n" for entry in entries)


def _flow(value: object) -> str:
    """Return a value as JSON, which is YAML in flow style."""
    return json.dumps(value, ensure_ascii=False)
