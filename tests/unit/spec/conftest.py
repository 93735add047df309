"""A small catalog: one transport with options, two scenarios, two link conditions."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict

from mplab.drivers.transport import DRIVERS
from mplab.format.units import DurationS, SizeBytes
from mplab.scenarios.base import Parameters
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.experiments.resolve import Catalog, load_experiment
from mplab.userfiles.experiments.transport import TransportInfo
from tests.unrun_scenario import UnrunScenario


class DownloadParameters(Parameters):
    sizes: tuple[SizeBytes, ...] = (1_000_000,)
    pause: DurationS = 2.0


class WebParameters(Parameters):
    sites: tuple[str, ...] = ("search",)


class MptcpOptions(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    primary: Literal["wifi", "lte"] = "wifi"
    mode: Literal["fullmesh", "backup"] = "fullmesh"


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    links = tmp_path / "links"
    links.mkdir()
    for name, rate in (("baseline", "7040 kbit/s"), ("slow", "500 kbit/s")):
        path = f"{{down: {rate}, up: 2020 kbit/s, rtt: 50 ms}}"
        (links / f"{name}.yaml").write_text(f"title: The {name} link\nwifi: {path}\nlte: {path}\n", encoding="utf-8")
    transports = (
        TransportInfo("sptcp-wifi", "TCP over WiFi", "#0072b2", "o"),
        TransportInfo("mptcp", "Multipath TCP", "#009e73", "D", MptcpOptions),
        DRIVERS["mpflex"],
    )
    scenarios = (
        UnrunScenario("download", DownloadParameters, 60.0),
        UnrunScenario("web", WebParameters, 100.0),
    )
    return Catalog(
        transports={info.name: info for info in transports},
        scenarios={scenario.name: scenario for scenario in scenarios},
        links_dir=links,
    )


@pytest.fixture
def load(tmp_path: Path, catalog: Catalog) -> Callable[..., Experiment]:
    """Load an experiment file with the required keys and the test's keys, as YAML text."""

    def load_with(**keys: str) -> Experiment:
        needed = {
            "mplab": "1",
            "name": "example",
            "transports": "[sptcp-wifi]",
            "links": "[baseline]",
            "scenarios": "[download]",
        }
        path = tmp_path / "example.yaml"
        path.write_text("".join(f"{key}: {text}\n" for key, text in {**needed, **keys}.items()), encoding="utf-8")
        return load_experiment(path, catalog=catalog)

    return load_with
