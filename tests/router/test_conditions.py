"""Every link condition of the table, applied by the real driver on the stand-in router and met by virtual phones."""

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from mplab.base.undo import UndoStack
from mplab.drivers.shaper.openwrt.router import Router
from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.tc.base import TC
from mplab.format.abilities import refusals
from mplab.format.path import PathCondition
from tests.router.bench import Bench
from tests.router.conditions import LINKS, Case, different_paths, needs_emulator
from tests.router.conftest import settings_of, shaper_of
from tests.router.inside import MAC, SERVER
from tests.router.measure import Slot, differences, measure, path_rtt_ms
from tests.router.stand_in import StandInRouter

CASES = different_paths()
TABLE_VARIABLE = "MPLAB_ROUTER_TABLE"
"""Environment variable with the file to write the table to."""
_TABLE_TIMEOUT_S = 900


def attachments(phone: str) -> dict[str, object]:
    """Return the phone's entry in a lab file; the router identifies some phones by address, others by MAC."""
    if phone == "phone":
        return {"wifi": {"router": "wifi", "ip": "10.66.1.11"}, "lte": {"router": "wifi", "interface": "vec2"}}
    return {"wifi": {"router": "wifi", "mac": MAC[phone]}}


def test_only_traces_and_middleboxes_are_refused() -> None:
    for link in LINKS:
        refused = any(needs_emulator(condition) for _, condition in link.conditions())
        assert bool(refusals(link, TC)) is refused, (link.name, refusals(link, TC))


class RouterBench(Bench):
    """A held router with its phones."""

    def __init__(self, router: StandInRouter, held: Router) -> None:
        self.held = held
        phones = {name: router.node(name) for name in MAC}
        self.shapers = {node: shaper_of(name, attachments(name), {"wifi": held}) for name, node in phones.items()}
        slots = [Slot(phones["phone"], "rmnet0"), *(Slot(node, "wlan0") for node in phones.values())]
        super().__init__(slots, SERVER, self.shape)

    def shape(self, cases: Mapping[Slot, Case]) -> None:
        """Apply conditions at the start of an experiment, or change them in the middle of it."""
        for slot, case in cases.items():
            shaper = self.shapers[slot.phone]
            if case.changed:
                shaper.change(slot.interface, case.path)
            else:
                shaper.apply({slot.interface: case.path}, seed=1)
        self.held.hold.check_alive()


@pytest.fixture(scope="module")
def bench(prepared_router: StandInRouter) -> Iterator[RouterBench]:
    with UndoStack() as undo:
        settings = settings_of(prepared_router, dead_man="60 s")
        with Router("wifi", settings, owner=Owner(undo), interfaces=("vec0", "vec2")) as held:
            yield RouterBench(prepared_router, held)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_phone_meets_what_was_asked(bench: RouterBench, case: Case) -> None:
    bench.outcome(case).check()


@pytest.mark.timeout(_TABLE_TIMEOUT_S)
def test_all_losses_together_and_the_table(bench: RouterBench) -> None:
    """Add up the losses of all paths: those of one path are too few to detect a deviation of 20 %."""
    if table := os.environ.get(TABLE_VARIABLE):
        Path(table).write_text(bench.table(), encoding="utf-8")
    outcomes = [bench.outcome(case) for case in CASES]
    judged = [outcome for outcome in outcomes if not outcome.spoilt]
    probes = [outcome.found for outcome in judged]
    shares = [outcome.case.path.round_trip_loss_percent / 100 for outcome in judged]
    lost = sum(probe.loss_percent / 100 * probe.loss_sent for probe in probes)
    expected = sum(probe.loss_sent * share for probe, share in zip(probes, shares, strict=True))
    deviation = math.sqrt(
        sum(probe.loss_sent * share * (1 - share) for probe, share in zip(probes, shares, strict=True))
    )
    assert deviation < 0.03 * expected, "enough losses to find a fifth more or less"
    assert abs(lost - expected) <= 4 * deviation


def test_what_is_a_fifth_off_is_found(bench: RouterBench) -> None:
    requested = PathCondition.of(8000, 2000, 40, loss_percent=0.5)
    applied = PathCondition.of(6400, 1600, 48, loss_percent=3)
    slot = bench.slots[0]
    bench.shape({slot: Case("a fifth off", applied, changed=False)})
    measured = measure({slot: requested}, SERVER)
    problems = " ".join(
        differences(requested, measured[slot], path_rtt_ms(requested, measured[slot], bench.idle[slot]))
    )
    assert all(name in problems for name in ("rate down", "rate up", "RTT", "loss")), problems


def test_what_the_kernel_counts(bench: RouterBench) -> None:
    (shaper,) = (bench.shapers[slot.phone] for slot in bench.slots if slot.interface == "rmnet0")
    state = shaper.state()
    assert "netem" in state["rmnet0"]["up"]
    assert shaper.counters()["rmnet0.down.packets_out"] > 0
