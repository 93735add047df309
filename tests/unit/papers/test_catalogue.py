"""The catalogue of papers: wrong files get messages with file and line; mplab's own fits its experiments and claims."""

from pathlib import Path

import pytest

from mplab.analysis.figures.catalog import catalog as figure_catalog
from mplab.analysis.report.sources import PAPERS
from mplab.base.errors import InputError
from mplab.base.places import EXPERIMENTS, ROOT
from mplab.lab.catalog import catalog
from mplab.userfiles.experiments.resolve import load_experiment
from mplab.userfiles.papers.paper import load_catalogue

RIGHT = """\
mplab_paper: 1
paper: some2020
forms:
  one:
    quick: {repetitions: 2}
    full: {}
rows:
  - id: some2020-fig1
    place: figure 1
    shows: times
    numbers: 10 %
    experiment: one
  - id: some2020-sec2.1-a
    place: §2.1
    shows: energy
    numbers: 3 J
    missing: a model of energy
"""


@pytest.fixture
def experiments(tmp_path: Path) -> Path:
    (tmp_path / "one.yaml").write_text("mplab: 1\nname: one\n")
    return tmp_path


def refused(experiments: Path, text: str, name: str = "some2020") -> list[str]:
    folder = experiments / "papers"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        load_catalogue(folder, experiments)
    return [line.removeprefix(f"{folder}/") for line in str(caught.value).splitlines()]


def test_a_right_file_is_read(experiments: Path) -> None:
    folder = experiments / "papers"
    folder.mkdir()
    (folder / "some2020.yaml").write_text(RIGHT)
    read = load_catalogue(folder, experiments)
    assert [row.id for row in read.rows] == ["some2020-fig1", "some2020-sec2.1-a"]
    assert read.experiments == ("one",)
    assert read.forms["one"]["quick"] == {"repetitions": 2}
    assert [row.id for row in read.chosen(("some2020-sec2.1-a",))] == ["some2020-sec2.1-a"]
    assert read.chosen(("some2020",)) == read.rows == read.chosen(())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("fig1\n    place", "1\n    place", "8: rows[0].id: row 'some2020-1': the paper, then figN"),
        ("id: some2020-fig1", "id: other2020-fig1", "8: rows[0].id: 'other2020-fig1' is not of the paper 'some2020'"),
        ("    experiment: one", "    experiment: on", "12: rows[0].experiment: unknown experiment 'on'. Did you mean"),
        ("    experiment: one\n", "", "8: rows[0]: 'experiment', 'answer', 'missing' or 'cannot' is needed"),
        ("missing: a model", "cannot: a model\n    missing: a model", "13: rows[1]: 'cannot' excludes"),
        ("missing: a model", "answer: 3 J\n    missing: a model", "13: rows[1]: 'answer' excludes"),
        ("missing: a model", "figures: {gain: x}\n    missing: a model", "13: rows[1]: 'figures' needs 'experiment'"),
        ("some2020-sec2.1-a", "some2020-fig1", "13: rows[1].id: 'some2020-fig1' is there twice"),
        ("repetitions: 2", "repetition: 2", "5: forms.one.quick: unknown key 'repetition'. Did you mean"),
        ("  one:\n", "  two:\n", "4: forms.two: unknown experiment 'two'"),
        ("paper: some2020", "paper: some2021", "2: paper: found 'some2021', the name of the file is needed"),
        ("mplab_paper: 1", "mplab_paper: 2", "1: mplab_paper: format '2': this program reads format 1"),
    ],
)
def test_a_wrong_file_is_refused_with_file_and_line(experiments: Path, old: str, new: str, message: str) -> None:
    assert old in RIGHT
    lines = refused(experiments, RIGHT.replace(old, new, 1))
    assert any(line.startswith(f"some2020.yaml:{message}") for line in lines), lines


def test_an_experiment_needs_forms(experiments: Path) -> None:
    (experiments / "two.yaml").write_text("mplab: 1\nname: two\n")
    lines = refused(experiments, RIGHT.replace("experiment: one", "experiment: two"))
    assert lines == ["some2020.yaml:12: rows[0].experiment: 'two' has no forms: add it to 'forms'"]


def test_forms_are_in_one_file_only(experiments: Path) -> None:
    folder = experiments / "papers"
    folder.mkdir()
    (folder / "another2020.yaml").write_text(RIGHT.replace("some2020", "another2020"))
    lines = refused(experiments, RIGHT)
    assert lines == ["some2020.yaml:4: forms.one: the forms of 'one' are in the file of another paper, too"]


def test_an_experiment_file_is_not_a_paper(experiments: Path) -> None:
    (line,) = refused(experiments, "mplab: 1\nname: x\ntransports: [mptcp]\n")
    assert line == "some2020.yaml:1: this is an experiment file, not a paper of the catalogue. " + (
        f"Use it with 'mplab run {experiments}/papers/some2020.yaml'"
    )


def test_an_unknown_figure_is_named_with_a_similar_one() -> None:
    with pytest.raises(InputError, match=r"unknown paper or figure 'han2015-fig66'\. Did you mean 'han2015-fig6'"):
        load_catalogue().chosen(("han2015-fig66",))


OWN = load_catalogue()


def test_every_row_of_the_papers_is_there() -> None:
    counts = {paper.name: len(paper.rows) for paper in OWN.papers}
    assert counts == {"adarsh2019": 19, "baerts2015": 38, "deng2014": 12, "han2015": 13, "nikravesh2016": 31}
    assert len(OWN.rows) == 113
    assert set(counts) == {source.key for source in PAPERS}


def test_every_figure_of_ours_exists() -> None:
    known = {named.name for named in figure_catalog().all}
    assert {name for row in OWN.rows for name in row.figures} <= known


def test_claims_and_rows_fit_together() -> None:
    """A claim names a row of an experiment; a row with an experiment has a claim, or says why it has none."""
    loaded = {name: load_experiment(EXPERIMENTS / f"{name}.yaml", catalog=catalog()) for name in OWN.experiments}
    claimed = {(claim.figure, name) for name, file in loaded.items() for claim in file.claims if claim.figure}
    rows = {(row.id, name) for row in OWN.rows for name in row.experiments}
    assert claimed - rows == set()
    without = {row.id for row in OWN.rows if row.experiment and not any(figure == row.id for figure, _ in claimed)}
    assert without == {row.id for row in OWN.rows if row.unclaimed}


MPFLEX = ROOT / "mpflex"
PLUG_INS = {
    "min-RTT": MPFLEX / "internal/transport/sched/minrtt.go",
    "round robin": MPFLEX / "internal/transport/sched/roundrobin.go",
    "TxDelay": MPFLEX / "internal/transport/sched/txdelay.go",
    "smart reinjection": MPFLEX / "internal/transport/session/copy.go",
    "policy": MPFLEX / "policies/nikravesh2016-fig18-lab.yaml",
}


def lines_of_code(path: Path) -> int:
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    return sum(line != "" and not line.startswith(("//", "#")) for line in lines)


def test_the_lines_of_the_plug_ins_are_those_of_the_source() -> None:
    (row,) = OWN.chosen(("nikravesh2016-table4",))
    assert row.answer == ", ".join(f"{name} {lines_of_code(path)}" for name, path in PLUG_INS.items())
    assert f"{lines_of_code(MPFLEX / 'internal/transport/sched/sched.go')} lines that" in row.differs


def test_no_other_experiment_has_claims_of_papers() -> None:
    others = [path for path in EXPERIMENTS.glob("*.yaml") if path.stem not in OWN.experiments]
    assert [path.stem for path in others if load_experiment(path, catalog=catalog()).claims] == []
