"""``mplab bundle`` and ``mplab reproduce``, without a lab."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import mplab.run as mplab_run
from mplab.analysis.bundle.read import DamagedBundleError
from mplab.analysis.errors import BundleError
from mplab.analysis.pipeline import analyze
from mplab.base.errors import GateError, InputError, MplabError
from mplab.cli.main import app
from mplab.run.hostside import host
from tests.unit.analysis.synthetic import Synthetic, toy_scenario

RUN = "20260922T101500Z-demo-abc123"


def mplab(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with one analysed run, whose scenario is registered; the working directory is empty."""
    folder, here = tmp_path / "runs", tmp_path / "here"
    folder.mkdir()
    here.mkdir()
    builder = Synthetic(folder, repetitions=2, labels=["1 MB"])
    monkeypatch.setattr("mplab.analysis.pipeline.draw_all", lambda _: iter(()))
    monkeypatch.chdir(here)
    with toy_scenario(tmp_path / "toy"):
        analyze(builder.build())
        yield folder


@pytest.fixture
def bundle(runs: Path) -> Path:
    assert mplab("bundle", "--runs", str(runs)).exit_code == 0
    return Path(f"{RUN}.tar.gz")


def test_a_bundle_has_the_name_of_its_run(runs: Path) -> None:
    result = mplab("bundle", RUN, "--runs", str(runs), "--json", "--license", "CC0-1.0", "--author", "Ada")
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert content["path"] == f"{RUN}.tar.gz"
    checksum = subprocess.run(["sha256sum", content["path"]], capture_output=True, text=True, check=True)
    assert checksum.stdout.split()[0] == content["sha256"]
    result = mplab("bundle", "--runs", str(runs), "--no-tables", "-o", "small.tar.gz")
    assert "6 tables and scores are left out" in result.stdout
    assert Path("small.tar.gz").is_file()


def test_the_report_is_reproduced(bundle: Path) -> None:
    result = mplab("reproduce", str(bundle), "--report-only")
    assert result.exit_code == 0, result.output
    assert "all checksums hold" in result.stdout
    assert "every byte the same" in result.stdout
    content = json.loads(mplab("reproduce", str(bundle), "--report-only", "--json").stdout)
    assert (content["run"], content["broken"], content["results"]) == (RUN, [], None)
    assert (content["report"]["same"], content["report"]["differences"]) == (True, [])
    assert list(Path().iterdir()) == [bundle], "nothing is left here"


def test_what_was_made_again_can_be_kept(bundle: Path) -> None:
    assert mplab("reproduce", str(bundle), "--report-only", "--unpack-to", "kept").exit_code == 0
    check = subprocess.run(["sha256sum", "--check", "--quiet", "derived.sha256"], cwd=f"kept/run/{RUN}", check=False)
    assert check.returncode == 0
    result = mplab("reproduce", str(bundle), "--report-only", "--unpack-to", "kept")
    assert isinstance(result.exception, InputError)


def test_a_report_that_differs_ends_with_1(runs: Path) -> None:
    page = runs / RUN / "report" / "index.html"
    page.write_text(page.read_text() + "<!-- by hand -->\n")
    assert mplab("bundle", "--runs", str(runs), "-o", "b.tar.gz").exit_code == 0
    result = mplab("reproduce", "b.tar.gz", "--report-only")
    assert isinstance(result.exception, MplabError)
    assert result.exception.exit_code == 1
    assert "report/index.html" in result.stdout
    assert "by hand" in result.stdout
    content = json.loads(mplab("reproduce", "b.tar.gz", "--report-only", "--json").stdout)
    (difference,) = content["report"]["differences"]
    assert (difference["name"], difference["deviation"]) == ("report/index.html", "differs")
    versions = {line["what"]: (line["then"], line["here"]) for line in content["report"]["versions"]}
    assert versions["mptrace"][0] == "", "the manifest of this run knows nothing of it"


def test_a_damaged_bundle_ends_with_2(bundle: Path, tmp_path: Path) -> None:
    subprocess.run(["tar", "-xzf", str(bundle.resolve())], cwd=tmp_path, check=True)
    (tmp_path / RUN / "manifest.json").write_text("{}")
    subprocess.run(["tar", "-czf", "bad.tar.gz", "-C", str(tmp_path), RUN], check=True)
    result = mplab("reproduce", "bad.tar.gz", "--json")
    assert isinstance(result.exception, DamagedBundleError)
    assert result.exception.exit_code == 2
    assert json.loads(result.stdout)["broken"] == [{"name": "manifest.json", "damage": "differs"}]


def test_a_report_is_made_again_from_python(bundle: Path, tmp_path: Path) -> None:
    steps: list[str] = []
    watch = mplab_run.RunCallbacks(analysis=lambda progress: steps.append(progress.step))
    reproduction = mplab_run.reproduce(bundle, tmp_path / "unpacked", only_report=True, watch=watch)
    reproduction.check()
    assert (reproduction.good, reproduction.report.differences, reproduction.second) == (True, (), None)
    assert reproduction.bundle.run.manifest.run_id == RUN
    assert {"statistics", "report"} <= set(steps)
    with pytest.raises(InputError, match="key 'links' is missing"):
        mplab_run.reproduce(str(bundle), tmp_path / "again")


@pytest.mark.parametrize(
    ("differences", "differing", "invalid", "error"),
    [((), 0, 0, None), (("index.html",), 0, 0, MplabError), ((), 1, 0, GateError), ((), 0, 1, None)],
)
def test_what_a_reproduction_means(
    differences: tuple[str, ...], differing: int, invalid: int, error: type[MplabError] | None
) -> None:
    bundle: Any = SimpleNamespace(run=SimpleNamespace(manifest=SimpleNamespace(run_id=RUN)))
    report: Any = SimpleNamespace(differences=differences)
    progress = SimpleNamespace(failed=0, invalid=invalid)
    run = SimpleNamespace(progress=progress, path=Path("runs/new"))
    second: Any = SimpleNamespace(run=run, agreed=SimpleNamespace(differing=(None,) * differing))
    reproduction = mplab_run.Reproduction(bundle, report, second)
    assert reproduction.good == (error is None and not invalid)
    if error is None:
        reproduction.check()
    else:
        with pytest.raises(error, match=RUN) as caught:
            reproduction.check()
        assert type(caught.value) is error


def test_what_cannot_be_run_here_is_refused_before_anything_is_made(bundle: Path) -> None:
    result = mplab("reproduce", str(bundle))
    assert isinstance(result.exception, InputError)
    assert "experiment.yaml:1: key 'links' is missing" in str(result.exception)
    assert not Path("runs").exists()


def test_an_author_without_a_name_is_refused(runs: Path) -> None:
    result = mplab("bundle", "--runs", str(runs), "--author", "<https://x>")
    assert isinstance(result.exception, InputError)
    assert "NAME or NAME <URL>" in str(result.exception)


def test_too_large_a_bundle_is_refused(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mplab.cli.verbs.share.reproduce.GB", 1000)
    result = mplab("reproduce", str(bundle), "--max-size", "1")
    assert isinstance(result.exception, BundleError)
    assert "--max-size allows more" in str(result.exception)


def test_locks_are_those_of_the_commit_of_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        names = ("-c", "user.name=t", "-c", "user.email=t@localhost")
        result = subprocess.run(["git", *names, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True)
        return result.stdout.strip()

    git("init", "--quiet")
    for name in host.LOCKS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("old\n")
    git("add", ".")
    git("commit", "--quiet", "--message", "old")
    commit = git("rev-parse", "HEAD")
    (tmp_path / "go.sum").write_text("new\n")
    monkeypatch.setattr("mplab.base.places.ROOT", tmp_path)
    files, where = host.describe_locks(commit)
    assert (files["go.sum"], where) == (b"old\n", f"commit {commit}")
    unknown: Any
    for unknown in (None, "0" * 40, "--output=x"):
        files, where = host.describe_locks(unknown)
        assert files["go.sum"] == b"new\n"
        assert "checkout" in where


def test_an_anonymised_bundle_is_reproduced(runs: Path) -> None:
    (runs / RUN / "hooks.log").write_text("reached 185.60.216.35\n")
    result = mplab("bundle", "--runs", str(runs), "--anonymise", "-o", "a.tar.gz")
    assert result.exit_code == 0, result.output
    assert "ANONYMISED.md lists them" in result.stdout
    assert mplab("reproduce", "a.tar.gz", "--report-only", "--unpack-to", "kept").exit_code == 0
    assert "185.60.216.35" not in Path(f"kept/run/{RUN}/hooks.log").read_text()


def test_what_was_transferred_is_never_called_anonymous(runs: Path) -> None:
    manifest = runs / RUN / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"capture": "headers"', '"capture": "payload"'))
    result = mplab("bundle", "--runs", str(runs), "--anonymise", "-o", "a.tar.gz")
    assert isinstance(result.exception, BundleError)
    assert result.exception.exit_code == 2
    assert not Path("a.tar.gz").exists()
