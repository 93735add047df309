"""Keys that an experiment inherits from the file that it extends, and their copy in a run directory."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mplab.base.errors import InputError
from mplab.run.run_directory import RunDirectory
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.experiments.layers import kept_files, merged, read_layers
from mplab.userfiles.experiments.resolve import Catalog, load_experiment
from mplab.userfiles.labs.labuse import VIRTUAL
from mplab.userfiles.strict.inherit import merge

BASE = """
mplab: 1
name: base
title: The base
seed: 7
repetitions: 3
tolerance: {rtt: 20 %, rate: 30 %}
transports: [sptcp-wifi, mptcp]
links: [baseline]
scenarios:
  - download: {sizes: [1 kB]}
tags: [one, two]
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return file


def test_keys_are_inherited_and_own_ones_win(write: Write, catalog: Catalog) -> None:
    write("common/base.yaml", BASE)
    own = write(
        "experiments/own.yaml",
        "mplab: 1\nname: own\nextends: ../common/base.yaml\ntolerance: {rate: 5 %}\nlinks: [slow]\ntags: [three]\n",
    )
    experiment = load_experiment(own, catalog=catalog)
    assert (experiment.name, experiment.title) == ("own", "own"), "name and title are a file's own"
    assert (experiment.seed, experiment.repetitions) == (7, 3)
    assert (experiment.tolerance.rtt_percent, experiment.tolerance.rate_percent) == (20, 5), "mappings are merged"
    assert ([link.name for link in experiment.links], experiment.tags) == (["slow"], ("three",)), "lists are replaced"
    assert [use.label for use in experiment.transports] == ["sptcp-wifi", "mptcp"]
    assert [parent.name for parent in experiment.parents] == ["base.yaml"]
    assert experiment.record().extends == ("base.yaml",)


def test_several_files_in_a_row(write: Write, catalog: Catalog) -> None:
    write("base.yaml", BASE)
    write("deep/middle.yaml", "mplab: 1\nextends: ../base.yaml\nseed: 8\nrepetitions: 4\n")
    own = write("own.yaml", "mplab: 1\nname: own\nextends: deep/middle.yaml\nseed: 9\n")
    experiment = load_experiment(own, catalog=catalog)
    assert (experiment.seed, experiment.repetitions, experiment.tolerance.rtt_percent) == (9, 4, 20)
    assert [parent.name for parent in experiment.parents] == ["middle.yaml", "base.yaml"]


def test_a_lab_file_is_sought_beside_the_file_that_names_it(write: Write, catalog: Catalog) -> None:
    write("common/base.yaml", BASE + "lab: labs/mine.yaml\n")
    write("common/labs/mine.yaml", "mplab: 1\nname: m\nphones: {one: {driver: virtual}}\n")
    own = write("own.yaml", "mplab: 1\nname: own\nextends: common/base.yaml\n")
    assert load_experiment(own, catalog=catalog).lab.phone == "one"


def test_everything_keeps_its_line_and_file(write: Write, tmp_path: Path) -> None:
    write("base.yaml", BASE)
    own = write("own.yaml", "mplab: 1\nname: own\nextends: base.yaml\ntolerance:\n  rate: 5 %\ntags: [three]\n")
    document = merged(read_layers(own))
    base = str(tmp_path / "base.yaml")
    places = {
        ("seed",): (base, 5),
        ("tolerance",): (str(own), 4),
        ("tolerance", "rtt"): (base, 7),
        ("tolerance", "rate"): (str(own), 5),
        ("scenarios", 0, "download", "sizes", 0): (base, 11),
        ("tags", 0): (str(own), 6),
        ("tags", 1): (str(own), 6),
        ("name",): (str(own), 2),
    }
    assert {path: (document.file_of(path), document.line(path)) for path in places} == places
    assert not document.holds(("tags", 1)), "nothing is left of a list that was replaced"


@pytest.mark.parametrize(
    ("base", "own", "both"),
    [
        ({"a": 1, "b": 2}, {"b": 3}, {"a": 1, "b": 3}),
        ({"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"d": 3}}}, {"a": {"b": {"c": 1, "d": 3}}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"b": 1}}, {"a": None}, {"a": None}),
        ({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
)
def test_merging(base: object, own: object, both: object) -> None:
    assert merge(base, own) == both


def tree(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def run_of(experiment: Experiment, root: Path) -> RunDirectory:
    files = kept_files(experiment.parents, experiment.given)
    return RunDirectory.create(root, experiment.name, experiment.source, b"", files)


def test_a_run_directory_is_enough_to_read_it_again(write: Write, catalog: Catalog, tmp_path: Path) -> None:
    """Read the experiment from a run directory that was moved, after its original files are gone."""
    source = BASE + "vars: {often: 1, size: 1 kB}\ncell_timeout: ${size}\n"
    base = write("../x.yaml", source.replace("[1 kB]", '["${size}"]').replace("cell_timeout: ${size}\n", ""))
    middle = write("common/my middle.yaml", "mplab: 1\nextends: ../../x.yaml\nrepetitions: ${often}\n")
    own = write("own.yaml", "mplab: 1\nname: own\nextends: common/my middle.yaml\n")
    first = load_experiment(own, catalog=catalog, given={"size": "7 kB"})
    run = run_of(first, tmp_path / "runs")
    assert run.experiment_file.read_bytes() == own.read_bytes()
    assert (run.kept_dir / "1-my_middle.yaml").read_bytes() == middle.read_bytes()
    assert (run.kept_dir / "2-x.yaml").read_bytes() == base.read_bytes()
    for path in (base, middle, own):
        path.unlink()
    moved = RunDirectory(run.path.rename(tmp_path / "moved"))
    again = moved.load_experiment(catalog, lab=VIRTUAL)
    assert again.scenarios == first.scenarios
    assert (again.repetitions, again.given) == (1, {"size": "7 kB"})
    assert tree(run_of(again, tmp_path / "again").kept_dir) == tree(moved.kept_dir), "a run of it keeps the same"


def test_a_run_directory_reads_no_other_files(write: Write, catalog: Catalog, tmp_path: Path) -> None:
    """Refuse a foreign run that names files of this machine."""
    write("base.yaml", BASE)
    run = RunDirectory.create(tmp_path / "runs", "own", b"mplab: 1\nname: own\nextends: ../../base.yaml\n")
    with pytest.raises(InputError, match=r"experiment.yaml:3: extends: .*one '1-….yaml' is needed"):
        run.load_experiment(catalog, lab=VIRTUAL)


def test_a_run_without_any_keeps_nothing(write: Write, catalog: Catalog, tmp_path: Path) -> None:
    run = run_of(load_experiment(write("base.yaml", BASE), catalog=catalog), tmp_path / "runs")
    assert not run.kept_dir.exists()
    assert run.load_experiment(catalog, lab=VIRTUAL).seed == 7


def test_a_long_chain_ends(write: Write, catalog: Catalog) -> None:
    for number in range(30):
        write(f"{number}.yaml", f"mplab: 1\nname: x\nextends: {number + 1}.yaml\n")
    with pytest.raises(InputError, match=r"20.yaml:3: extends: more than 20 files extend each other"):
        load_experiment(write("own.yaml", "mplab: 1\nname: x\nextends: 0.yaml\n").parent / "0.yaml", catalog=catalog)
