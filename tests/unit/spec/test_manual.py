"""The examples of docs/experiment-files.md and docs/links.md have the effect that the text describes."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.experiments.resolve import Catalog, load_experiment
from mplab.userfiles.links.link import load_link, load_links
from mplab.userfiles.links.pathfile import DirectionFile, PathFile
from mplab.userfiles.links.sweep import SweptDirection, SweptPath
from mplab.userfiles.strict.yaml import parse_yaml

DOCS = Path(__file__).parents[3] / "docs"
MANUAL = (DOCS / "experiment-files.md").read_text(encoding="utf-8")
LINKS = (DOCS / "links.md").read_text(encoding="utf-8")
EXAMPLES, LINK_EXAMPLES = (re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) for text in (MANUAL, LINKS))


def test_the_first_example_is_the_demo() -> None:
    demo = parse_yaml(EXAMPLES[0].encode(), "manual").data
    committed = (DOCS.parent / "experiments" / "demo.yaml").read_bytes()
    assert demo.items() <= parse_yaml(committed, "demo").data.items()


def test_the_links_of_an_experiment_are_good(load: Callable[..., Experiment], catalog: Catalog) -> None:
    links_dir = DOCS.parent / "router-configs" / "links"
    path = load().path
    text = path.read_text(encoding="utf-8").replace("links: [baseline]\n", EXAMPLES[4])
    path.write_text(text, encoding="utf-8")
    links = load_experiment(path, catalog=replace(catalog, links_dir=links_dir)).links
    assert len(links) == 1 + 11 + 1 + 1 + 2
    assert links[-1].name == "short-queue-50"


def test_the_example_of_an_inherited_experiment_is_good(load: Callable[..., Experiment], catalog: Catalog) -> None:
    base = load(tolerance="{rtt: 1 %, rate: 2 %}", seed="3").path
    base.rename(base.parent / "nightly.yaml")
    path = base.parent / "nightly-long.yaml"
    path.write_text(EXAMPLES[1], encoding="utf-8")
    experiment = load_experiment(path, catalog=catalog)
    assert (experiment.name, experiment.repetitions, experiment.seed) == ("nightly-long", 50, 3)
    assert (experiment.tolerance.rtt_percent, experiment.tolerance.rate_percent) == (1, 5)


def test_the_example_of_variables_is_good(catalog: Catalog, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"mplab: 1\nname: x\ntransports: [sptcp-wifi]\n{EXAMPLES[2]}", encoding="utf-8")
    experiment = load_experiment(path, catalog=catalog, given={"phone": "hand", "size": "5 MB"})
    assert (experiment.title, experiment.notes) == ("Downloads of 5 MB", "Measured by hand; ${size} stays as it is.")
    assert experiment.scenario("several").record().parameters["sizes"] == ["10 kB", "1 MB"]
    assert experiment.links[0].wifi.rtt_ms == 50.0


def test_the_link_examples_are_good(catalog: Catalog) -> None:
    folder = catalog.links_dir
    traces = folder.parent / "traces"
    traces.mkdir()
    for name in ("driving-lte.down", "driving-lte.up"):
        (traces / name).write_text("5\n", encoding="utf-8")
    whole, directions, _queues_of_an_experiment, middlebox, on_top, sweep, changes = LINK_EXAMPLES
    for name, text in (
        ("whole", whole),
        ("directions", directions),
        ("on-top", on_top),
        ("baseline", whole),
        ("middlebox", middlebox),
        ("sweep", whole + sweep),
        ("changes", whole + changes),
    ):
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    assert load_link("whole", folder).title == "Typical WiFi and LTE"
    assert load_link("directions", folder).wifi.up.delay_ms == 12.0
    assert set(load_link("middlebox", folder).stripped) == {"rmnet0"}
    assert load_link("on-top", folder).wifi.up.loss == 1.0
    assert [link.lte.rtt_ms for link in load_links("sweep", folder)] == [20.0, *(50.0 * step for step in range(1, 11))]
    assert len(load_link("changes", folder).changes) == 10 + 1 + 2 + 2 + 2


def test_the_values_that_a_sweep_may_vary_are_those_of_a_path_and_of_a_direction() -> None:
    assert set(SweptPath.model_fields) == set(PathFile.model_fields)
    assert set(SweptDirection.model_fields) == set(DirectionFile.model_fields)
