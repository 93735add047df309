"""Every link condition of the table, given by the real driver on the test router, met by a virtual phone."""

import os
from collections.abc import Iterator
from itertools import zip_longest

import pytest

from orchestrator.catalog import LINKS_DIR
from orchestrator.shaper.abilities import TC
from orchestrator.shaper.openwrt import Router
from orchestrator.shaper.protocol import PathMeasurement
from orchestrator.shaper.tc import TcShaper
from orchestrator.spec.abilities import refusals
from orchestrator.spec.lab import PhoneFile
from orchestrator.spec.link import list_links, load_links
from orchestrator.spec.path import PathCondition
from orchestrator.undo import UndoStack
from tests.router.conftest import settings_of
from tests.router.measure import differences, probe, probe_server
from tests.router.stand_in import StandInRouter

PHONE = PhoneFile.model_validate(
    {"wifi": {"router": "wifi", "ip": "10.66.1.11"}, "lte": {"router": "wifi", "interface": "vec2"}}
)
OPEN = PathCondition.of(None, None, 0.0)
ATTEMPTS = 4
"""The host may be busy; what is shaped wrongly is so each time."""


LINKS = [link for file in list_links(LINKS_DIR) for link in load_links(file, LINKS_DIR)]


def _different_paths() -> list[tuple[str, dict[str, PathCondition]]]:
    """Every path of every condition (before its changes) once, two at a time, one on each interface of the phone."""
    named: dict[PathCondition, str] = {}
    for link in LINKS:
        for path, condition in (("wifi", link.wifi), ("lte", link.lte)):
            if not _has_trace(condition):
                named.setdefault(condition, f"{link.name}.{path}")
    found = [(name, condition) for condition, name in named.items()]
    pairs = zip_longest(found[::2], found[1::2], fillvalue=found[0])
    return [(f"{one}+{two}", {"wlan0": first, "rmnet0": second}) for (one, first), (two, second) in pairs]


def _has_trace(path: PathCondition) -> bool:
    return path.up.trace is not None or path.down.trace is not None


PATHS = _different_paths()


def test_only_what_is_a_trace_is_refused() -> None:
    for link in LINKS:
        traces = any(_has_trace(condition) for _, condition in link.conditions())
        assert bool(refusals(link, TC)) is traces, (link.name, refusals(link, TC))


class Bench:
    """A held router with its phone."""

    def __init__(self, router: StandInRouter, held: Router) -> None:
        self.router = router
        self.held = held
        self.phone = router.node("phone")
        self.shaper = TcShaper("one", PHONE, {"wifi": held}, lambda paths: probe(self.phone, paths))
        self.idle: dict[str, PathMeasurement] = probe(self.phone, {"wlan0": OPEN, "rmnet0": OPEN})


@pytest.fixture(scope="module")
def bench(prepared_router: StandInRouter) -> Iterator[Bench]:
    with probe_server(prepared_router), UndoStack() as undo:
        settings = settings_of(prepared_router, dead_man="60 s")
        with Router("wifi", settings, undo=undo, interfaces=("vec0", "vec2")) as held:
            yield Bench(prepared_router, held)


@pytest.mark.parametrize("paths", [paths for _, paths in PATHS], ids=[name for name, _ in PATHS])
def test_a_phone_meets_what_was_asked(bench: Bench, paths: dict[str, PathCondition]) -> None:
    for _ in range(ATTEMPTS):
        bench.shaper.apply(paths, seed=1)
        found = bench.shaper.probe(paths)
        problems = {name: differences(paths[name], found[name], bench.idle[name]) for name in paths}
        if not any(problems.values()):
            break
    if table := os.environ.get("MPLAB_ROUTER_TABLE"):
        with open(table, "a", encoding="utf-8") as file:  # noqa: PTH123
            file.writelines(f"{name}\t{paths[name]}\t{found[name]}\n" for name in paths)
    assert not any(problems.values()), problems
    state = bench.shaper.state()
    assert state["wlan0"]["of"] == "10.66.1.11 at vec0"
    assert bench.shaper.counters()["wlan0.down.packets_out"] > 0
