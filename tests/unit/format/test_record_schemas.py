"""Records of this version and of older versions are valid by the schemas in docs/schema."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mplab.base.places import ROOT
from mplab.cli.schema import CAMPAIGN_EVENTS, CELL, DIRECTORY, MANIFEST, RUN_EVENTS, SCORES
from mplab.format.cell import CellRecord, ScoreRow, Scores
from mplab.format.manifest import Manifest
from mplab.format.record import json_of
from mplab.lab.catalog import catalog
from mplab.run.blocks import make_plan
from mplab.userfiles.experiments.resolve import load_experiment
from tests.fakes.bench import RunBench, experiment_text
from tests.fakes.eventlines import read_lines

EXPERIMENTS = sorted((ROOT / "experiments").glob("*.yaml"))
LINES = Path(__file__).parent / "events"
SPEC = {"id": "0001-web-a-baseline-r1", "scenario": "web", "transport": "a", "link": "baseline"}
OLD_MANIFEST: dict[str, Any] = {
    "run_id": "20260101T000000Z-demo-abcdef",
    "experiment": {
        "name": "demo",
        "transports": [{"label": "a", "name": "sptcp-wifi"}],
        "links": [{"name": "baseline", "paths": {"wlan0": {"down": {"rate_kbps": 7040}, "up": {}}}}],
    },
    "plan": {"cells": [SPEC]},
    "from_the_future": True,
}
OLD_CELL: dict[str, Any] = {"id": SPEC["id"], "spec": SPEC, "outcome": "ok", "links": {"wlan0": {"asked": {}}}}
OLD_SCORES: dict[str, Any] = {"values": [{"metric": "download_time", "value": 1, "labels": {"size": "1 MB"}}]}


@cache
def validator(name: str) -> Draft202012Validator:
    schema = json.loads((DIRECTORY / name).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_what_a_run_writes_is_valid(tmp_path: Path) -> None:
    text = experiment_text(
        transports="sptcp-wifi, mptcp",
        changes="{at: 0.1 s, path: wifi, loss: 3 %}",
        more="stop: {failures: 2}\nhooks: {before_run: [logger begins], timeout: 5 s}\ntags: [night]\n",
    )
    run = RunBench.planned(tmp_path, text)
    cells = run.execute()
    validator(MANIFEST).validate(read(run.directory.manifest_file))
    for cell in cells:
        validator(CELL).validate(read(run.directory.path / "cells" / cell / "cell.json"))
    lines = read_lines(run.directory.events_file)
    assert lines
    for line in lines:
        validator(RUN_EVENTS).validate(line)


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_manifests_of_the_products_experiments_are_valid(path: Path) -> None:
    experiment = load_experiment(path, catalog=catalog())
    manifest = Manifest(run_id="x", experiment=experiment.record(), plan=make_plan(experiment))
    validator(MANIFEST).validate(json_of(manifest))


def test_scores_are_valid() -> None:
    row = ScoreRow(metric="download_time", value=1.25, unit="s", labels={"size": "1 MB"})
    validator(SCORES).validate(json_of(Scores(cell=SPEC["id"], values=(row,))))


@pytest.mark.parametrize(("name", "log"), [(RUN_EVENTS, "run"), (CAMPAIGN_EVENTS, "campaign")])
def test_events_of_the_version_before_are_valid(name: str, log: str) -> None:
    check = validator(name)
    for line in read_lines(LINES / f"{log}.jsonl"):
        check.validate(line)
    check.validate({"t": 1, "event": "from_the_future", "x": 1})


@pytest.mark.parametrize(
    ("name", "record"), [(MANIFEST, OLD_MANIFEST), (CELL, OLD_CELL), (SCORES, OLD_SCORES)], ids=[MANIFEST, CELL, SCORES]
)
def test_records_of_older_versions_are_valid(name: str, record: dict[str, Any]) -> None:
    validator(name).validate(record)


def test_what_must_be_upgraded_is_valid_afterwards() -> None:
    manifest = {**OLD_MANIFEST, "lab": "virtual"}
    assert not validator(MANIFEST).is_valid(manifest)
    validator(MANIFEST).validate(json_of(Manifest.model_validate(manifest)))
    cell = {**OLD_CELL, "spec": {**SPEC, "scenario": {"label": "web"}}, "host": None}
    assert not validator(CELL).is_valid(cell)
    validator(CELL).validate(json_of(CellRecord.model_validate(cell)))


@pytest.mark.parametrize(
    ("name", "record"),
    [
        (MANIFEST, {**OLD_MANIFEST, "format": 2}),
        (MANIFEST, {**OLD_MANIFEST, "run_id": "../x"}),
        (MANIFEST, {**OLD_MANIFEST, "experiment": {"name": "demo", "links": [{"name": "x", "paths": {"wlan0": 1}}]}}),
        (CELL, {**OLD_CELL, "outcome": "good"}),
        (CELL, {**OLD_CELL, "spec": {}}),
        (SCORES, {"values": [{"metric": "x"}]}),
        (RUN_EVENTS, {"event": "run_started"}),
        (RUN_EVENTS, {"t": 1, "event": "cell_finished", "cell": "a"}),
        (RUN_EVENTS, {"t": 1, "event": "run_planned", "cells": [{"id": "a b"}]}),
        (CAMPAIGN_EVENTS, {"t": 1, "event": "job_started", "job": "a", "run": "b"}),
        (CAMPAIGN_EVENTS, {"t": 1, "event": "job_finished", "job": "a", "state": "running"}),
    ],
)
def test_wrong_records_are_invalid(name: str, record: dict[str, Any]) -> None:
    assert not validator(name).is_valid(record)
