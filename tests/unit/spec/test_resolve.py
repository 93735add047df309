"""An experiment file becomes an experiment: names looked up, defaults filled in. (Wrong files: tests/golden.)"""

import json
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest

from mplab.base.errors import InputError
from mplab.format.direction import Queue
from mplab.format.experiment import Tolerance
from mplab.format.palette import distinct_styles
from mplab.format.record import json_of
from mplab.format.sockets import SocketSettings
from mplab.scenarios.base import Parameters
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.experiments.resolve import Catalog, load_experiment
from mplab.userfiles.experiments.transport import ROUTES
from mplab.userfiles.labs.labuse import VIRTUAL
from tests.unrun_scenario import UnrunScenario

Load = Callable[..., Experiment]


def test_defaults(load: Load) -> None:
    experiment = load()
    assert experiment.title == experiment.name == "example"
    assert (experiment.seed, experiment.repetitions, experiment.lab) == (1, 1, VIRTUAL)
    assert experiment.tolerance == Tolerance(10.0, 10.0)
    assert (experiment.congestion_control, experiment.capture) == ("cubic", "headers")
    assert (experiment.retries, experiment.cell_timeout_s) == (1, 120.0)


def test_everything_said(load: Load, tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text("mplab: 1\nname: bench\nphones: {one: {driver: virtual}}\n")
    experiment = load(
        title="A title",
        seed="7",
        repetitions="3",
        lab="lab.yaml",
        tolerance="{rtt: 5 %, rate: 20 %}",
        congestion_control="bbr",
        capture="off",
        retries="0",
        cell_timeout="5 min",
    )
    assert (experiment.title, experiment.seed, experiment.repetitions) == ("A title", 7, 3)
    assert (experiment.lab.phone, experiment.congestion_control, experiment.capture) == ("one", "bbr", "off")
    assert experiment.tolerance == Tolerance(5.0, 20.0)
    assert (experiment.retries, experiment.cell_timeout_s) == (0, 300.0)
    assert experiment.source == (tmp_path / "example.yaml").read_bytes()


def test_a_scenario_by_name_has_its_own_defaults(load: Load) -> None:
    use = load().scenario("download")
    assert (use.label, use.name, use.time_limit_s, use.estimate_s) == ("download", "download", 60.0, 15.0)
    assert use.record().parameters == {"sizes": ["1 MB"], "pause": "2 s"}


def test_a_scenario_with_parameters_and_label(load: Load) -> None:
    experiment = load(scenarios="[{download: {sizes: [10 kB], label: small}}, {download: }]")
    assert [use.label for use in experiment.scenarios] == ["small", "download"]
    assert json_of(experiment.scenario("small").record()) == {
        "label": "small",
        "name": "download",
        "parameters": {"sizes": ["10 kB"], "pause": "2 s"},
    }


def test_a_transport_without_options_has_none(load: Load) -> None:
    use = load().transport("sptcp-wifi")
    assert use.options is None
    assert json_of(use.record()) == {
        "label": "sptcp-wifi",
        "name": "sptcp-wifi",
        "options": {},
        "colour": "#0072b2",
        "marker": "o",
        "title": "TCP over WiFi",
        "paths": ["wlan0", "rmnet0"],
        "sessions": False,
        "route": ROUTES["proxy"],
    }


def test_variants_of_a_transport_are_drawn_apart(load: Load) -> None:
    lte, spare = "{mptcp: {primary: lte, label: mptcp-lte}}", "{mptcp: {mode: backup, label: spare}}"
    experiment = load(transports=f"[mptcp, sptcp-wifi, {lte}, {spare}]")
    first, wifi, second, third = experiment.transports
    assert (first.colour, first.marker, first.title) == ("#009e73", "D", "Multipath TCP")
    assert second.title == "Multipath TCP (mptcp-lte)"
    assert second.record().options == {"primary": "lte", "mode": "fullmesh"}
    assert third.record().options == {"primary": "wifi", "mode": "backup"}
    drawn = [first, wifi, second, third]
    assert len({use.colour for use in drawn}) == len({use.marker for use in drawn}) == 4


def test_a_scheduler_after_the_name_is_the_option(load: Load) -> None:
    short, long = load(transports="[mpflex:minrtt]"), load(transports="[{mpflex: {scheduler: minrtt}}]")
    (shorthand,), (mapping,) = short.transports, long.transports
    assert (shorthand.label, mapping.label) == ("mpflex-minrtt", "mpflex")
    assert (shorthand.name, shorthand.options) == (mapping.name, mapping.options) == ("mpflex", shorthand.options)
    assert shorthand.record().options["scheduler"] == "minrtt"
    assert (shorthand.title, shorthand.colour, shorthand.marker) == (mapping.title, mapping.colour, mapping.marker)


def test_each_scheduler_is_drawn_in_the_same_way_whatever_stands_beside_it(load: Load) -> None:
    backup = "{mpflex:backup: {primary: lte}}"
    alone, among = load(transports="[mpflex:txdelay]"), load(transports=f"[mptcp, mpflex, {backup}, mpflex:txdelay]")
    (single,), (*others, same) = alone.transports, among.transports
    assert (single.title, single.colour, single.marker) == (same.title, same.colour, same.marker)
    assert [use.title for use in others] == ["Multipath TCP", "MPFlex", "MPFlex backup"]
    assert others[2].record().options["primary"] == "lte"
    assert len({use.colour for use in among.transports}) == len({use.marker for use in among.transports}) == 4


def test_variants_of_a_scheduler_are_drawn_apart(load: Load) -> None:
    first, second = load(transports="[mpflex:minrtt, {mpflex:minrtt: {reinjection: [], label: bare}}]").transports
    assert (first.title, second.title) == ("MPFlex min-RTT", "MPFlex min-RTT (bare)")
    assert (first.colour, first.marker) != (second.colour, second.marker)


def test_palette_never_repeats_until_it_says_so() -> None:
    styles = distinct_styles([("t", "#000000", "o")] * 81)
    assert len(set(styles)) == 81
    with pytest.raises(ValueError, match="cannot be told apart"):
        distinct_styles([("t", "#000000", "o")] * 82)


def test_links_by_name_and_inline(load: Load) -> None:
    path = "{down: 1 Mbit/s, up: 1 Mbit/s, rtt: 10 ms, queue: 20 packets}"
    experiment = load(links=f"[slow, {{name: mine, wifi: {path}, lte: {path}}}]")
    assert [link.name for link in experiment.links] == ["slow", "mine"]
    assert experiment.link("slow").title == "The slow link"
    assert experiment.link("mine").lte.up.queue == Queue("packets", 20)


def test_an_experiment_cannot_be_changed(load: Load) -> None:
    with pytest.raises(FrozenInstanceError):
        load().seed = 2  # type: ignore[misc]


def test_the_resolved_experiment_is_plain_json(load: Load) -> None:
    resolved: Any = json_of(load(transports="[mptcp]").record())
    assert json.loads(json.dumps(resolved)) == resolved
    assert resolved["links"][0]["paths"]["rmnet0"]["up"]["rate_kbps"] == 2020.0


def test_problems_of_file_and_links_come_together_first_line_first(load: Load, tmp_path: Path) -> None:
    (tmp_path / "links" / "slow.yaml").write_text("title: 1\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load(links="[slow]", scenarios="[wbe]", seed="-1")
    lines = str(caught.value).splitlines()
    assert [line.removeprefix(str(tmp_path)).partition(" ")[0] for line in lines] == [
        "/example.yaml:5:",
        "/example.yaml:6:",
        "/links/slow.yaml:1:",
        "/links/slow.yaml:1:",
        "/links/slow.yaml:1:",
    ]


def test_a_timeout_that_just_suffices(load: Load) -> None:
    assert load(scenarios="[web]", cell_timeout="100 s").cell_timeout_s == 100.0
    with pytest.raises(InputError, match="99 s is shorter than what scenario 'web' may take"):
        load(scenarios="[web]", cell_timeout="99 s")


def test_a_set_of_combinations_takes_a_list_of_names(load: Load) -> None:
    experiment = load(
        transports="[sptcp-wifi, mptcp]",
        scenarios="[download, web]",
        include='[{scenario: [download, "w*"]}]',
        exclude="[{scenario: [download, web], transport: mptcp, link: [slow]}]",
        links="[baseline, slow]",
    )
    assert json_of(experiment.matrix) == {
        "include": [{"scenario": ["download", "w*"]}],
        "exclude": [{"scenario": ["download", "web"], "transport": ["mptcp"], "link": ["slow"]}],
    }


def test_the_default_timeout_is_that_of_the_slowest_scenario(load: Load, catalog: Catalog) -> None:
    slow = {**catalog.scenarios, "slow": UnrunScenario("slow", Parameters, 300.0)}
    path = load(scenarios="[download, web]").path
    assert load_experiment(path, catalog=catalog).cell_timeout_s == 120.0
    path.write_text(path.read_text().replace("web", "slow"))
    assert load_experiment(path, catalog=replace(catalog, scenarios=slow)).cell_timeout_s == 300.0


def test_sockets_of_a_transport_override_those_of_the_experiment(load: Load) -> None:
    reno = "{mptcp: {congestion_control: reno, primary: lte, label: reno}}"
    small = "{sptcp-wifi: {receive_buffer: 64 KiB, label: small}}"
    experiment = load(transports=f"[mptcp, {reno}, {small}]", congestion_control="bbr", receive_buffer="1 MiB")
    assert experiment.sockets("mptcp") == SocketSettings("bbr", 1 << 20)
    assert experiment.sockets("reno") == SocketSettings("reno", 1 << 20)
    assert experiment.sockets("small") == SocketSettings("bbr", 64 << 10)
    options = {use.label: use.record().options for use in experiment.transports}
    assert options["reno"]["congestion_control"] == "reno"
    assert options["reno"]["primary"] == "lte"
    assert options["small"] == {"receive_buffer": "65.536 kB"}
    assert "congestion_control" not in options["mptcp"]


def test_without_a_receive_buffer_that_of_the_phone_stays(load: Load) -> None:
    assert load(transports="[mptcp]").sockets("mptcp") == SocketSettings("cubic", None)


def test_queues_vary_every_link(load: Load) -> None:
    links = load(links="[baseline, slow]", queues="[50 packets, 150 kB]").links
    assert [link.name for link in links] == [
        *("baseline-q50", "baseline-q150kb", "slow-q50", "slow-q150kb"),
    ]
    assert {way.queue for link in links[::2] for _, path in link.conditions() for way in (path.down, path.up)} == {
        Queue("packets", 50)
    }
    assert links[0].title.endswith("(queue 50 packets)")
    assert [link.name for link in load(queues="50 packets").links] == ["baseline-q50"]


def test_queues_keep_the_discipline(load: Load) -> None:
    path = "{down: 1 Mbit/s, up: 1 Mbit/s, rtt: 10 ms, queue: {length: 20 packets, discipline: codel}}"
    (link,) = load(links=f"[{{name: mine, wifi: {path}, lte: {path}}}]", queues="[1.5 MB]").links
    assert (link.name, link.wifi.down.queue) == ("mine-q1p5mb", Queue("bytes", 1_500_000, "codel"))
