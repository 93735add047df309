"""One model for each file: it reads back what the host wrote, and upgrades files of older versions."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from mplab.base.places import ROOT
from mplab.format.cell import CellRecord
from mplab.format.experiment import ExperimentRecord
from mplab.format.hooks import Hooks
from mplab.format.link import LinkCondition
from mplab.format.manifest import GitRecord, HostRecord, LabRecord, Manifest
from mplab.format.record import json_of
from mplab.lab.catalog import catalog
from mplab.run.blocks import make_plan
from mplab.userfiles.experiments.resolve import load_experiment
from mplab.userfiles.links.link import list_links, load_links

LINKS = ROOT / "router-configs" / "links"
OLD: dict[str, Any] = {
    "run_id": "20260101T000000Z-demo-abcdef",
    "experiment": {"name": "demo", "transports": [{"label": "a", "name": "sptcp-wifi"}]},
}
CELL = {"id": "0001-web-a-baseline-r1", "outcome": "ok"}


@pytest.mark.parametrize(
    ("download", "web", "same"),
    [
        ("", "", [True, True]),
        (", repeat: 1", ", tls: true, addresses: several, origin_rtt: table, browser: chromium", [True, True]),
        (", repeat: 2", ", origin_rtt: none", [False, False]),
    ],
)
def test_cells_of_an_older_version_keep_their_hashes(tmp_path: Path, download: str, web: str, same: list[bool]) -> None:
    file = tmp_path / "demo.yaml"
    file.write_text(
        "mplab: 1\nname: demo\nseed: 1\nrepetitions: 5\ntransports: [sptcp-wifi, sptcp-lte, mptcp]\nlinks: [baseline]\n"
        f"scenarios:\n  - download: {{sizes: [10 kB, 100 kB, 1 MB], pause: 100 ms{download}}}\n"
        f"  - web: {{sites: [search, wiki], http: h2{web}}}\ntolerance: {{rtt: 10 %, rate: 10 %}}\n"
    )
    experiment = load_experiment(file, catalog=catalog())
    hashes = [
        "ec6d5691773e025a63e008a1f8841eb32c1e2bb853ba8ee42e8fded0301b957a",
        "eb7442afc0c7895d623167c46a9ca1e5924d878ad80393abd2db82d448910872",
    ]
    cells = make_plan(experiment).cells[:2]
    assert [cell.scenario for cell in cells] == ["download", "web"]
    assert [cell.hash == hash_ for cell, hash_ in zip(cells, hashes, strict=True)] == same


@pytest.mark.parametrize("name", list_links(LINKS))
def test_a_recorded_link_condition_is_the_same_condition(name: str) -> None:
    for link in load_links(name, LINKS):
        read = TypeAdapter(LinkCondition).validate_json(json.dumps(link.to_json()))
        assert read.to_json() == link.to_json()
        assert (str(read.wifi), str(read.lte), read.story) == (str(link.wifi), str(link.lte), link.story)
        assert [(m.at_s, m.path, m.reshaped) for m in read.changes] == [
            (m.at_s, m.path, m.reshaped) for m in link.changes
        ]


@pytest.mark.parametrize("device", [[], {}, 5, None, "eth0"])
def test_a_change_of_a_wrong_device_is_a_validation_error(device: object) -> None:
    link = {"name": "x", "changes": [{"at_s": 1, "device": device}]}
    with pytest.raises(ValidationError, match=r"changes\.0\.path"):
        TypeAdapter(LinkCondition).validate_python(link)


def test_a_recorded_experiment_is_the_same_experiment(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(
        "mplab: 1\nname: x\nrepetitions: 9\ntransports: [sptcp-wifi, mptcp]\nlinks: [baseline]\n"
        "scenarios: [download, web]\n"
        'max: 1 h\nuntil: "06:00"\nstop: {failures: 3, interval: {metric: goodput, within: 5 %}}\n'
        "hooks: {before_run: [logger x], timeout: 5 s}\nexclude: [{transport: mptcp, scenario: web}]\n"
        "budgets: {goodput: {at_least: 1 Mbit/s}}\n"
        "claims: [{text: t, metric: goodput, transport: mptcp, against: [sptcp-wifi], gain: [1 %, 20 %]}]\n"
    )
    record = load_experiment(file, catalog=catalog()).record()
    read = TypeAdapter(ExperimentRecord).validate_json(json.dumps(json_of(record)))
    assert json_of(read) == json_of(record)
    assert (read.ending.until, read.hooks, read.claims) == (record.ending.until, record.hooks, record.claims)
    assert record.budgets[0].place
    assert not read.budgets[0].place, "file and line are not recorded"
    assert Hooks() == Hooks.model_validate({})


def test_a_manifest_of_an_older_version_has_the_defaults() -> None:
    read = Manifest.model_validate(OLD)
    assert (read.experiment.files, read.experiment.claims, read.experiment.budgets) == (None, (), ())
    assert (read.plan.cells, read.lab.kind, read.same_clock, read.git.commit) == ((), "", False, None)


def test_a_lab_that_is_its_kind_only_is_read() -> None:
    assert Manifest.model_validate({**OLD, "lab": "virtual"}).lab.kind == "virtual"
    assert Manifest.model_validate({**OLD, "lab": None}).lab.kind == ""
    clocks = [Manifest.model_validate({**OLD, "lab": {"kind": kind}}).same_clock for kind in ("virtual", "adb")]
    assert clocks == [True, False], "older versions did not record it"
    assert not Manifest.model_validate({**OLD, "lab": {"kind": "virtual", "same_clock": False}}).same_clock


def test_a_transport_without_a_look_gets_one() -> None:
    (transport,) = Manifest.model_validate(OLD).transports
    assert (transport.title, transport.colour, transport.marker) == ("a", "#0072B2", "o")


def test_labels_may_be_the_objects_that_carry_them() -> None:
    spec = {"id": CELL["id"], "scenario": {"label": "web"}, "transport": {"name": "a"}, "link": "baseline"}
    read = CellRecord.model_validate({**CELL, "spec": spec})
    assert (read.spec.scenario, read.spec.transport, read.spec.link) == ("web", "a", "baseline")


def test_a_link_without_paths_or_with_another_interface_is_read() -> None:
    read = TypeAdapter(LinkCondition).validate_python({"name": "x", "paths": {"eth0": {"down": {}}}})
    assert read == LinkCondition("x")


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("host", None, False),
        ("host", {"load_before": "high", "overloaded": True}, True),
    ],
)
def test_the_load_of_an_older_cell_is_read(key: str, value: object, found: object) -> None:
    spec = {"id": CELL["id"], "scenario": "web", "transport": "a", "link": "baseline"}
    assert CellRecord.model_validate({**CELL, "spec": spec, key: value}).host.overloaded is found


def test_what_the_lab_says_of_itself_is_kept() -> None:
    lab = {"kind": "adb", "phone": "one", "routers": {"wifi": {"kernel": "6.6"}}}
    assert Manifest.model_validate({**OLD, "lab": lab}).lab.content() == lab


def test_another_format_is_refused() -> None:
    with pytest.raises(ValidationError):
        Manifest.model_validate({**OLD, "format": 2})


def test_a_manifest_that_is_made_of_records_keeps_them() -> None:
    lab = LabRecord(kind="virtual", phone="phone-1", paths={"wlan0": "linkem"})
    host, git = HostRecord(kernel="6.1"), GitRecord(commit="abc", dirty=True)
    manifest = Manifest(run_id="x", experiment=ExperimentRecord(name="x"), lab=lab, host=host, git=git)
    assert (manifest.lab, manifest.host, manifest.git) == (lab, host, git)
    assert Manifest.model_validate(json_of(manifest)) == manifest
