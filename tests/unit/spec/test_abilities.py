"""A condition that a shaper cannot apply is refused before anything is changed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mplab.base.errors import InputError
from mplab.format.abilities import refusals
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.experiments.resolve import Catalog, load_experiment
from mplab.userfiles.labs.machines import emulator
from mplab.userfiles.links.link import load_link

LTE = "lte: {down: 9 Mbit/s, up: 2 Mbit/s, rtt: 70 ms}"

LINKEM = emulator().abilities


def refused(directory: Path, wifi: str, *changes: str) -> list[str]:
    listed = "".join(f"  - {{{change}}}\n" for change in changes)
    text = f"wifi: {wifi}\n{LTE}\n" + (f"changes:\n{listed}" if changes else "")
    (directory / "mine.yaml").write_text(text, encoding="utf-8")
    return refusals(load_link("mine", directory), LINKEM)


def test_what_linkem_can_do_is_not_refused(tmp_path: Path) -> None:
    keys = "down: {rate: 500 Mbit/s, loss: {p: 1 %, r: 9 %}, duplicate: 1 %, queue: {discipline: fq_codel}}"
    assert refused(tmp_path, f"{{{keys}, up: unlimited, rtt: 60 s, reorder: 1 %, queue: 60 MB}}") == []


@pytest.mark.parametrize(
    ("wifi", "message"),
    [
        (
            "{down: 1 Mbit/s, up: 1 Mbit/s, rtt: 9 ms, queue: {discipline: cake}}",
            "wifi, down: the link emulator of the virtual lab has no queue discipline 'cake'; "
            "it has: drop-tail, codel, fq_codel",
        ),
        (
            "{down: 1 Mbit/s, up: 501 Mbit/s, rtt: 9 ms}",
            "wifi, up: rate 501 Mbit/s: the link emulator of the virtual lab can give 1 kbit/s to 500 Mbit/s",
        ),
        (
            "{down: 0.5 kbit/s, up: 1 Mbit/s, rtt: 9 ms}",
            "wifi, down: rate 0.5 kbit/s: the link emulator of the virtual lab can give 1 kbit/s to 500 Mbit/s",
        ),
        (
            "{down: 1 Mbit/s, up: {rate: 1 Mbit/s, delay: 61 s}, rtt: 62 s}",
            "wifi, up: delay 61000 ms: the link emulator of the virtual lab can give at most 60000 ms",
        ),
        (
            "{down: 1 Mbit/s, up: 1 Mbit/s, rtt: 9 ms, queue: 1 GB}",
            "wifi, down: queue 1 GB: the link emulator of the virtual lab can hold at most 67108.864 kB",
        ),
        (
            "{down: 1 Mbit/s, up: 1 Mbit/s, rtt: 9 ms, queue: 2000000 packets}",
            "wifi, down: queue 2000000 packets: the link emulator of the virtual lab can hold at most 1000000 packets",
        ),
    ],
)
def test_what_linkem_cannot_do(tmp_path: Path, wifi: str, message: str) -> None:
    assert refused(tmp_path, wifi) == [message]


def test_what_comes_later_counts_too(tmp_path: Path) -> None:
    (message,) = refused(
        tmp_path,
        "{down: 1 Mbit/s, up: 1 Mbit/s, rtt: 9 ms}",
        "at: 7 s, path: wifi, up: {queue: {discipline: cake}}",
        "at: 9 s, path: wifi, loss: 1 %",
    )
    assert message.startswith("wifi at 7 s, up: ")


def test_a_shaper_without_traces(tmp_path: Path) -> None:
    links = tmp_path / "links"
    links.mkdir()
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "t.down").write_text("5\n", encoding="utf-8")
    assert refused(links, "{down: {trace: t.down}, up: 1 Mbit/s, rtt: 9 ms}") == []
    (message,) = refusals(load_link("mine", links), replace(LINKEM, traces=False))
    assert message.endswith("cannot play packet-delivery traces (trace t.down)")
    (tmp_path / "traces" / "fast.down").write_text("1\n" * 42, encoding="utf-8")
    assert refused(links, "{down: {trace: fast.down}, up: 1 Mbit/s, rtt: 9 ms}") == [
        "wifi, down: trace fast.down offers 505.344 Mbit/s in the mean: "
        "the link emulator of the virtual lab can give at most 500 Mbit/s"
    ]


@pytest.mark.parametrize(
    ("wifi", "found"), [("queue: {discipline: cake}", "down: .* 'cake'"), ("up: 501 Mbit/s", "up: .* to 500 Mbit/s")]
)
def test_an_experiment_that_asks_for_it_is_wrong(
    catalog: Catalog, load: Callable[..., Experiment], wifi: str, found: str
) -> None:
    link = f"{{name: fair, extends: baseline, wifi: {{{wifi}}}}}"
    path = load(links=f"[baseline, {link}]").path
    with pytest.raises(InputError, match=rf"example\.yaml:4: links\[1\]: link 'fair': wifi, {found}"):
        load_experiment(path, catalog=replace(catalog, shapers={"linkem": LINKEM}))
