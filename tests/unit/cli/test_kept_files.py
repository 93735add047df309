"""Files that cells depend on: checked before a run, part of the cells' hashes, kept with the run."""

import json
from pathlib import Path
from typing import cast

import pytest

from mplab.base.errors import InputError
from mplab.base.programs import MPFLEX
from mplab.drivers.transport import DRIVERS, make_transport
from mplab.lab.catalog import catalog
from mplab.run.hostside.beginning import begin
from mplab.run.planning import PlannedRun, load, plan_of
from mplab.run.resuming import changed_files, check_unchanged, experiment_as_in
from mplab.run.run_directory import RunDirectory
from mplab.userfiles.experiments.app import app_files
from mplab.userfiles.experiments.experiment import Experiment

EXPERIMENT = """\
mplab: 1
name: ruled
transports: [{mpflex: {policy: rules}}, sptcp-wifi]
links: [baseline]
scenarios: [{download: {sizes: [10 kB]}}]
"""
POLICY = """\
policy: 1
schemes:
  wifi-only: {scheduler: single, paths: wifi}
default: wifi-only
rules: []
"""
OTHER = POLICY.replace("rules: []", "rules:\n  - {name: mail, match: {domain: mail.lab}, action: wifi-only}")


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The policy file of the experiment."""
    folder = tmp_path / "policies"
    folder.mkdir()
    monkeypatch.setitem(cast(dict[str, Path], DRIVERS["mpflex"].files), "policy", folder)
    (folder / "rules.yaml").write_text(POLICY)
    return folder / "rules.yaml"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ruled.yaml"
    path.write_text(EXPERIMENT)
    return path


def hashes(experiment: Experiment) -> dict[str, str]:
    return {cell.transport: cell.hash for cell in plan_of(experiment).cells}


def in_force(experiment: Experiment) -> str | None:
    """Return the policy that the agent of a cell uses."""
    use = experiment.transport("mpflex")
    return make_transport(use.name, use.options, {}, use.files).agent_settings().policy


@pytest.mark.skipif(MPFLEX.find() is None, reason="mpflex is not built")
def test_a_plan_refuses_a_policy_that_the_agent_would_refuse(policy: Path, file: Path) -> None:
    policy.write_text(POLICY.replace("[]", "[[[ garbage"))
    with pytest.raises(InputError, match=r"^policies/rules\.yaml:\d+: not YAML: "):
        plan_of(load(file))


def test_the_content_of_a_policy_is_part_of_the_hashes_of_its_cells(policy: Path, file: Path) -> None:
    before = hashes(load(file))
    policy.write_text(OTHER)
    after = hashes(load(file))
    assert after["mpflex"] != before["mpflex"]
    assert after["sptcp-wifi"] == before["sptcp-wifi"], "and of no other cells"


@pytest.mark.parametrize("edit", ["changed", "removed"])
def test_a_run_goes_on_with_the_policy_that_it_began_with(policy: Path, file: Path, tmp_path: Path, edit: str) -> None:
    experiment = load(file)
    directory = begin(PlannedRun(experiment, plan_of(experiment), tmp_path / "runs"))
    assert (directory.kept_dir / "policies" / "rules.yaml").read_text() == POLICY
    if edit == "changed":
        policy.write_text(OTHER)
    else:
        policy.unlink()
    resumed = directory.load_experiment(catalog())
    assert in_force(resumed) == POLICY
    check_unchanged(directory, resumed)
    reproduced = load(directory.experiment_file)
    assert in_force(reproduced) == POLICY
    again = begin(PlannedRun(reproduced, plan_of(reproduced), tmp_path / "again"))
    assert (again.kept_dir / "policies" / "rules.yaml").read_text() == POLICY


def test_a_run_of_an_mplab_that_hashed_no_files_can_be_resumed(policy: Path, file: Path, tmp_path: Path) -> None:
    experiment = load(file)
    directory = begin(PlannedRun(experiment, plan_of(experiment.without_files()), tmp_path / "runs"))
    manifest = json.loads(directory.manifest_file.read_text())
    del manifest["experiment"]["files"]
    directory.manifest_file.write_text(json.dumps(manifest))
    (directory.kept_dir / "policies" / "rules.yaml").unlink()
    policy.write_text(OTHER)
    directory = RunDirectory.open(directory.path)
    resumed = directory.load_experiment(catalog())
    check_unchanged(directory, resumed)
    assert in_force(resumed) == OTHER, "there is no other one"
    assert experiment_as_in(directory.read_manifest(), resumed).files == {}


def test_a_file_that_is_not_kept_and_has_changed_is_named(policy: Path, file: Path, tmp_path: Path) -> None:
    experiment = load(file)
    directory = begin(PlannedRun(experiment, plan_of(experiment), tmp_path / "runs"))
    (directory.kept_dir / "policies" / "rules.yaml").write_text(OTHER)
    changed = directory.load_experiment(catalog())
    assert changed_files(directory.read_manifest(), changed) == ["policies/rules.yaml"]
    with pytest.raises(InputError, match=r"policies/rules\.yaml changed since the run began: its cells"):
        check_unchanged(directory, changed)
    assert policy.read_text() == POLICY


def test_what_an_android_app_is_driven_by_is_such_a_file() -> None:
    (path,) = app_files("youtube")
    assert path == "ui-scenarios/youtube/app.yaml"
    assert app_files("download") == {}
