"""One file that gives several conditions."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mplab.base.errors import InputError
from mplab.format.link import LinkCondition
from mplab.run.blocks import make_plan
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.experiments.resolve import Catalog
from mplab.userfiles.links.link import load_link, load_links

PATHS = """\
title: Some paths
wifi: {down: 7 Mbit/s, up: 2 Mbit/s, rtt: 50 ms}
lte: {down: 9 Mbit/s, up: 2 Mbit/s, rtt: 70 ms}
"""


def sweep(directory: Path, text: str, name: str = "mine") -> tuple[LinkCondition, ...]:
    (directory / f"{name}.yaml").write_text(f"{PATHS}sweep: {text}\n", encoding="utf-8")
    return load_links(name, directory)


def names(links: tuple[LinkCondition, ...]) -> list[str]:
    return [link.name for link in links]


def test_a_range_makes_a_condition_of_each_value(tmp_path: Path) -> None:
    links = sweep(tmp_path, "{lte: {rtt: 50..150 ms step 50 ms}}")
    assert names(links) == ["mine-50", "mine-100", "mine-150"]
    assert [link.lte.rtt_ms for link in links] == [50.0, 100.0, 150.0]
    assert {link.wifi.rtt_ms for link in links} == {50.0}
    assert links[0].title == "Some paths (LTE rtt 50 ms)"


@pytest.mark.parametrize(
    "text", ["50 ms..150 ms step 50 ms", "50..150 ms step 50", "50..150 step 50 ms", "50 .. 150ms step 50"]
)
def test_a_unit_holds_for_the_whole_range(tmp_path: Path, text: str) -> None:
    assert names(sweep(tmp_path, f"{{lte: {{rtt: {text}}}}}")) == ["mine-50", "mine-100", "mine-150"]


def test_steps_of_tenths_are_exact(tmp_path: Path) -> None:
    links = sweep(tmp_path, "{wifi: {loss: [0 %, 0.1..0.7 % step 0.1 %, 15 %]}}")
    assert names(links) == ["mine-0", *(f"mine-0p{tenth}" for tenth in range(1, 8)), "mine-15"]
    assert [link.wifi.up.loss for link in links] == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 15.0]


def test_a_key_by_itself_is_varied_on_both_paths(tmp_path: Path) -> None:
    links = sweep(tmp_path, "{rtt: [20 ms, 90 ms]}")
    assert [(link.wifi.rtt_ms, link.lte.rtt_ms) for link in links] == [(20.0, 20.0), (90.0, 90.0)]


def test_one_direction_may_be_varied(tmp_path: Path) -> None:
    links = sweep(tmp_path, "{wifi: {down: {loss: [1 %, 2 %]}}, core_rtt: [10 ms]}")
    assert [(link.wifi.down.loss, link.wifi.up.loss, link.core_rtt_ms) for link in links] == [
        (1.0, 0.0, 10.0),
        (2.0, 0.0, 10.0),
    ]
    rates = sweep(tmp_path, "{wifi: {down: [500 kbit/s, 1 Mbit/s, unlimited]}}")
    assert names(rates) == ["mine-500kbits", "mine-1mbits", "mine-unlimited"]
    assert [link.wifi.down_kbps for link in rates] == [500.0, 1000.0, None]


def test_two_keys_make_every_combination(tmp_path: Path) -> None:
    links = sweep(tmp_path, "{lte: {rtt: [50 ms, 90 ms]}, wifi: {loss: [0 %, 1 %]}}")
    assert names(links) == ["mine-0-50", "mine-0-90", "mine-1-50", "mine-1-90"]
    assert [(link.wifi.up.loss, link.lte.rtt_ms) for link in links] == [(0, 50), (0, 90), (1, 50), (1, 90)]


def test_words_are_varied_too(tmp_path: Path) -> None:
    links = sweep(tmp_path, "{wifi: {queue: [20 packets, 150 kB]}}")
    assert names(links) == ["mine-20packets", "mine-150kb"]
    assert [str(link.wifi.up.queue) for link in links] == ["20 packets", "150 kB"]


def test_one_of_a_sweep_is_a_link_like_others(tmp_path: Path) -> None:
    links = sweep(tmp_path, "{lte: {rtt: 50..150 ms step 50 ms}}")
    assert load_link("mine-100", tmp_path) == links[1]
    (tmp_path / "top.yaml").write_text("extends: mine-100\nlte: {loss: 1 %}\n", encoding="utf-8")
    top = load_link("top", tmp_path)
    assert (top.lte.rtt_ms, top.lte.up.loss, top.title) == (100.0, 1.0, "top")
    with pytest.raises(
        InputError, match="link 'mine' is a sweep of 3 conditions: name one of them, mine-50 … mine-150"
    ):
        load_link("mine", tmp_path)
    with pytest.raises(InputError, match=r"unknown link 'mine-x'.* Allowed: mine-100, mine-150, mine-50"):
        load_link("mine-x", tmp_path)


def test_a_sweep_gives_what_the_path_leaves_out(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        PATHS.replace(", rtt: 70 ms", "") + "sweep: {lte: {rtt: [9 ms]}}\n", encoding="utf-8"
    )
    assert load_links("mine", tmp_path)[0].lte.rtt_ms == 9.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "sweep: varies nothing"),
        ("50 ms", "sweep: found '50 ms', a mapping is needed; keys: core_rtt, "),
        ("{lte: {rt: 5 ms}}", "sweep.lte: unknown key 'rt'. Did you mean 'rtt'?"),
        ("{rtt: 50..500 step 50}", "sweep.rtt: range '50..500 step 50': one unit for all its numbers is needed, like"),
        ("{rtt: 50 ms..1 s step 50 ms}", "one unit for all its numbers is needed, found ms and s"),
        ("{rtt: 50..500 ms}", "sweep.rtt: range '50..500 ms': must be like '50..500 ms step 50 ms'"),
        ("{rtt: 50..500 ms step 40 ms}", "does not reach its end: 490 ms would be the last one"),
        ("{rtt: 500..50 ms step 50 ms}", "must go up"),
        ("{rtt: 50..500 ms step 0 ms}", "must go up"),
        ("{rtt: 0..5000 ms step 1 ms}", "5001 values, at most 1000 are allowed"),
        ("{wifi: {rtt: 1..40 ms step 1 ms}, lte: {rtt: 1..40 ms step 1 ms}}", "1600 conditions: at most 1000"),
        ("{rtt: [50 ms, 50 ms]}", "'50 ms' is there twice"),
        ("{rtt: []}", "found an empty list"),
        ("{rtt: [50]}", "found 50: values like '50 ms', or a range"),
        ("{rtt: [50 m]}", "unknown unit 'm'. Did you mean 'min'?"),
        ("{loss: 90..110 % step 10 %}", "percentage '110 %': must be at most 100 %"),
        ("{wifi: {jitter: 40 ms}}", "jitter 40 ms is more than the one-way delay 25 ms"),
        ("{wifi: {queue: [a, b]}}", "sweep.wifi.queue: queue: size 'a': a number with a unit"),
        ("{wifi: {distribution: [gauss]}}", "found 'gauss'. Allowed: uniform, normal"),
        ("{wifi: {trace: [a]}}", "unknown key 'trace'"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        sweep(tmp_path, text)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path}/mine.yaml:")


def test_no_two_conditions_have_one_name(tmp_path: Path) -> None:
    links, traces = tmp_path / "links", tmp_path / "traces"
    links.mkdir()
    traces.mkdir()
    for name in ("a.b", "a-b", "c" * 40):
        (traces / name).write_text("5\n", encoding="utf-8")
    assert names(sweep(links, "{wifi: {down: {trace: [a.b]}}}")) == ["mine-a-b"]
    with pytest.raises(InputError, match=r"mine.yaml:4: sweep: two of its conditions would be called 'mine-a-b'"):
        sweep(links, "{wifi: {down: {trace: [a.b, a-b]}}}")
    with pytest.raises(InputError, match=r"sweep: name 'mine-c+': 1 to 40 of a-z, 0-9 and '-'"):
        sweep(links, "{wifi: {down: {trace: [" + "c" * 40 + "]}}}")


def test_an_experiment_runs_every_condition_of_a_sweep(catalog: Catalog, load: Callable[..., Experiment]) -> None:
    sweep(catalog.links_dir, "{lte: {rtt: 50..150 ms step 50 ms}}", "far")
    inline = "{name: lossy, extends: baseline, sweep: {lte: {loss: [1 %, 2 %]}}}"
    experiment = load(links=f"[baseline, far, {inline}, slow]")
    wanted = ["baseline", "far-50", "far-100", "far-150", "lossy-1", "lossy-2", "slow"]
    assert [link.name for link in experiment.links] == wanted
    assert sorted(cell.link for cell in make_plan(experiment).cells) == sorted(wanted)


def test_one_condition_of_a_sweep_may_be_asked_for_but_not_twice(
    catalog: Catalog, load: Callable[..., Experiment]
) -> None:
    sweep(catalog.links_dir, "{lte: {rtt: 50..150 ms step 50 ms}}", "far")
    assert [link.name for link in load(links="[far-100]").links] == ["far-100"]
    with pytest.raises(InputError, match=r"links\[1\]: link 'far-100' is listed twice \(first in line 4\)"):
        load(links="[far-100, far]")
