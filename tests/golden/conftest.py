"""Golden files: `pytest tests/golden --update-golden` writes the messages again; then review the diff."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal, Self

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from mplab.base.errors import InputError
from mplab.base.plugins import PHONES, SCENARIOS
from mplab.drivers.transport import DRIVERS
from mplab.format.units import DurationS, SizeBytes
from mplab.scenarios.base import Parameters
from mplab.userfiles.experiments.experiment import ExperimentFile
from mplab.userfiles.experiments.resolve import Catalog
from mplab.userfiles.experiments.transport import TransportInfo
from mplab.userfiles.labs import lab, machines
from mplab.userfiles.labs.machines import Section, ShaperKind, kinds_of
from mplab.userfiles.labs.proxyfile import models
from tests.unrun_scenario import UnrunScenario

GOLDEN = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden messages again")


PHONE_KINDS, ROUTER_KINDS = ("adb", "emulated", "virtual"), ("openwrt", "virtual")
"""Kinds that messages list: a further kind in the registry changes no message."""


def pinned_kinds_of(section: Section) -> Mapping[str, ShaperKind]:
    return {name: kind for name, kind in kinds_of(section).items() if section != "routers" or name in ROUTER_KINDS}


Refused = Callable[[Path, Callable[[Path], object]], None]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Refused:
    """Assert that reading a file of this folder fails with exactly the message in the .txt file next to it."""

    monkeypatch.setitem(vars(PHONES), "plugins", {name: PHONES.plugins[name] for name in PHONE_KINDS})
    for module in (lab, machines):
        monkeypatch.setattr(module, "kinds_of", pinned_kinds_of)

    def check(file: Path, read: Callable[[Path], object]) -> None:
        monkeypatch.chdir(GOLDEN)
        with pytest.raises(InputError) as caught:
            read(file)
        message = with_placeholders(f"{caught.value}\n")
        expected = GOLDEN / file.with_suffix(".txt")
        if request.config.getoption("--update-golden", default=False):
            expected.write_text(message, encoding="utf-8")
        assert message == expected.read_text(encoding="utf-8")

    return check


def with_placeholders(message: str) -> str:
    """Replace lists of all items of a kind by placeholders, so that a further item changes no golden message."""
    lists: dict[str, Iterable[str]] = {
        "‹every kind of proxy›": models(),
        "‹every scenario›": list(SCENARIOS),
        "‹every key of an experiment file›": sorted(ExperimentFile.model_fields),
    }
    for placeholder, names in lists.items():
        message = re.sub(rf"(?<=: ){re.escape(', '.join(names))}(?=[;\n])", placeholder, message)
    return message


class DownloadParameters(Parameters):
    sizes: tuple[SizeBytes, ...] = Field((1_000_000,), min_length=1)
    pause: DurationS = 1.0


class WebParameters(Parameters):
    sites: tuple[Literal["news", "search", "wiki"], ...] = ("search",)
    http: Literal["h1", "h2"] = "h2"
    loads: int = Field(1, ge=1, le=20)
    cold_cache: bool = True


class MptcpOptions(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    primary: Literal["wifi", "lte"] | None = None
    mode: Literal["fullmesh", "backup"] = "fullmesh"

    @model_validator(mode="after")
    def _backup_of_what(self) -> Self:
        if self.mode == "backup" and self.primary is None:
            raise ValueError("mode 'backup' needs 'primary': the path that carries the data, wifi or lte")
        return self


@pytest.fixture
def catalog() -> Catalog:
    transports = (
        TransportInfo("sptcp-wifi", "TCP over WiFi", "#0072b2", "o"),
        TransportInfo("sptcp-lte", "TCP over LTE", "#e69f00", "s"),
        TransportInfo("mptcp", "Multipath TCP", "#009e73", "D", MptcpOptions),
        DRIVERS["mpflex"],
    )
    scenarios = (
        UnrunScenario("download", DownloadParameters, 60.0),
        UnrunScenario("slow", Parameters, 300.0),
        UnrunScenario("web", WebParameters, 100.0),
    )
    return Catalog(
        transports={info.name: info for info in transports},
        scenarios={scenario.name: scenario for scenario in scenarios},
        links_dir=Path("links"),
    )
