"""Bundles: the same run gives the same bytes, and unpacking returns the same files."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mplab.analysis.bundle import checksums
from mplab.analysis.bundle.contents import DERIVED_SUMS, SUMS, contents
from mplab.analysis.bundle.read import Bundle, DamagedBundleError, open_bundle
from mplab.analysis.bundle.rebuild import rebuild
from mplab.analysis.bundle.rocrate import Author, Publication
from mplab.analysis.bundle.write import Options, Written, write_bundle
from mplab.analysis.errors import BundleError, NotAnalysedError
from mplab.analysis.pipeline import analyze
from mplab.analysis.record.run import read_run
from tests.foreign import Foreign
from tests.unit.analysis.synthetic import TOY_SCORES, Synthetic

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("no_figures")]
LOCKS = {"requirements/lock.txt": b"numpy==2.4.0\n", "go.sum": b"h1:\n"}
OPTIONS = Options(locks=LOCKS, locks_of="commit 0123")
Analyzed = Callable[..., Path]


def files(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def opened(written: Written, folder: Path) -> Bundle:
    return open_bundle(written.path, folder)


def unpack(bundle: Written, folder: Path) -> None:
    folder.mkdir()
    subprocess.run(["tar", "-xzf", str(bundle.path)], cwd=folder, check=True)


@pytest.fixture
def run(analyzed: Analyzed) -> Path:
    return analyzed(repetitions=2, labels=["1 MB"])


@pytest.fixture
def bundle(run: Path, tmp_path: Path) -> Written:
    return write_bundle(run, tmp_path / "a.tar.gz", OPTIONS)


def test_the_same_run_gives_the_same_bytes_and_is_not_changed(run: Path, tmp_path: Path) -> None:
    before = files(run)
    first = write_bundle(run, tmp_path / "first.tar.gz", OPTIONS)
    for path in run.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    elsewhere = run.rename(tmp_path / "elsewhere")
    second = write_bundle(elsewhere, tmp_path / "second.tar.gz", OPTIONS)
    assert first.path.read_bytes() == second.path.read_bytes()
    assert files(elsewhere) == before


def test_coreutils_and_tar_agree(bundle: Written, tmp_path: Path) -> None:
    subprocess.run(["tar", "-xzf", str(bundle.path)], cwd=tmp_path, check=True)
    (top,) = (path.parent for path in tmp_path.glob(f"2026*/{SUMS}"))
    result = subprocess.run(["sha256sum", "--check", "--strict", "--quiet", SUMS], cwd=top, check=False)
    assert result.returncode == 0
    listed = checksums.parse(top / SUMS)
    assert {*listed, SUMS} == set(files(top))


def test_raw_data_come_out_as_they_went_in(run: Path, bundle: Written, tmp_path: Path) -> None:
    unpacked = opened(bundle, tmp_path / "out")
    inside = contents(read_run(run))
    assert {name: (unpacked.run.directory / name).read_bytes() for name in inside.raw} == {
        name: (run / name).read_bytes() for name in inside.raw
    }
    assert set(unpacked.derived) == set(inside.derived)
    assert {"report/index.html", "report/summary.json"} < set(unpacked.derived)
    assert not (unpacked.run.directory / "report" / "index.html").exists()
    assert (unpacked.before / "report" / "index.html").is_file()
    assert unpacked.run.directory.joinpath("environment/go.sum").read_bytes() == LOCKS["go.sum"]
    environment = json.loads((unpacked.run.directory / "environment" / "versions.json").read_text())
    assert environment["locks"] == {"of": "commit 0123", "files": sorted(LOCKS)}
    assert environment["versions"]["python"] == "3.11.7"


@pytest.mark.parametrize("tables", [True, False])
def test_the_report_is_made_again_byte_for_byte(run: Path, tmp_path: Path, tables: bool) -> None:
    written = write_bundle(run, tmp_path / "b.tar.gz", replace(OPTIONS, tables=tables))
    unpacked = opened(written, tmp_path / "another place")
    scores = len(list(run.glob("cells/*/scores.json")))
    assert written.left_out == (0 if tables else scores)
    remade = rebuild(unpacked)
    assert remade.differences == ()
    assert remade.same == len(unpacked.derived)


AGAIN = """
import sys
from pathlib import Path
from mplab.analysis.pipeline import analyze
analyze(Path(sys.argv[1]))
"""


def test_a_report_has_nothing_of_host_or_place(synthetic: Callable[..., Synthetic], tmp_path: Path) -> None:
    """Vary folder, time zone, language, threads, hash seed and matplotlib settings: the report stays the same."""
    run = synthetic(repetitions=3, labels=["1 MB"]).build()
    there = tmp_path / "a folder" / "somewhere else"
    shutil.copytree(run, there)
    taste = tmp_path / "taste"
    taste.mkdir()
    (taste / "matplotlibrc").write_text("font.size: 20\nsvg.fonttype: path\nlines.linewidth: 9\n")
    other = {
        "TZ": "Asia/Kathmandu",
        "LC_ALL": "C",
        "PYTHONHASHSEED": "7",
        "POLARS_MAX_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MPLCONFIGDIR": str(taste),
    }
    for directory, environment in ((run, {"TZ": "UTC", "POLARS_MAX_THREADS": "5"}), (there, other)):
        argv = [sys.executable, "-c", AGAIN, str(directory)]
        subprocess.run(argv, check=True, env={**os.environ, **environment})
    assert list((run / "report" / "figures").iterdir())
    assert files(run) == files(there)


def test_tables_without_captures_are_raw_data(run: Path) -> None:
    cell = sorted((run / "cells").iterdir())[0]
    table = f"cells/{cell.name}/tables/connections.parquet"
    assert table in contents(read_run(run)).raw
    (cell / "phone-wlan0.pcapng").write_bytes(b"x")
    assert table in contents(read_run(run)).derived


def test_what_analysis_says_of_an_error_does_not_tell_where_the_run_lies(
    synthetic: Callable[..., Synthetic], foreign: Foreign, tmp_path: Path
) -> None:
    run = synthetic(repetitions=1, labels=["1 MB"]).build()
    foreign.scenario("toy", f'{TOY_SCORES.partition("    done =")[0]}    return (folder / "a.har").open()\n')
    analyze(run)
    problem = json.loads((run / "report" / "summary.json").read_text())["problems"][0]
    assert "FileNotFoundError: [Errno 2] No such file or directory: 'a.har'" in problem["message"]
    unpacked = opened(write_bundle(run, tmp_path / "b.tar.gz", OPTIONS), tmp_path / "out")
    assert rebuild(unpacked).differences == ()


def test_a_report_that_is_not_of_these_data_is_told(run: Path, tmp_path: Path) -> None:
    summary = run / "report" / "summary.json"
    content = json.loads(summary.read_text())
    content["metrics"][0]["transports"][0]["median"] = 99.5
    summary.write_text(json.dumps(content))
    page = run / "report" / "index.html"
    page.write_text(page.read_text().replace("<body>", "<body class='x'>", 1))
    (run / "report" / "data" / "cells.csv").unlink()
    (run / "report" / "data" / "more.csv").write_text("a\n")
    unpacked = opened(write_bundle(run, tmp_path / "b.tar.gz", OPTIONS), tmp_path / "out")
    now = {"python": "3.11.7", "mplab": "0.2.0", "curl": "9", "commit": "abc"}
    remade = rebuild(unpacked, versions=now)
    differences = {difference.name: (difference.deviation, difference.how) for difference in remade.differences}
    assert set(differences) == {
        "report/summary.json",
        "report/index.html",
        "report/data/cells.csv",
        "report/data/more.csv",
    }
    assert differences["report/data/cells.csv"] == ("new", "")
    assert differences["report/data/more.csv"] == ("not made", "")
    assert differences["report/summary.json"][1].startswith("metrics[0].transports[0].median: 99.5, now ")
    assert "class='x'" in differences["report/index.html"][1]
    commit = "0123456789abcdef0123456789abcdef01234567"
    assert remade.versions == (("mplab", "0.1.0", "0.2.0"), ("commit", commit, "abc"))


def outcome_of_a_run_that_was_cut(spec: Any) -> str:
    return {5: "partial", 6: "missing"}.get(spec["index"], "ok")


def test_an_incomplete_run_is_bundled_when_asked(answered: Analyzed, tmp_path: Path) -> None:
    run = answered(repetitions=2, labels=["1 MB"], outcome=outcome_of_a_run_that_was_cut)
    target = tmp_path / "b.tar.gz"
    with pytest.raises(BundleError, match=r"2 of 6 cells are not finished\. `mplab resume` finishes it; --partial"):
        write_bundle(run, target, OPTIONS)
    assert not target.exists()
    unpacked = opened(write_bundle(run, target, replace(OPTIONS, partial=True)), tmp_path / "out")
    assert unpacked.run.counts["partial"] == 1
    assert rebuild(unpacked).differences == ()


def test_a_run_without_a_report_is_refused(synthetic: Callable[..., Synthetic], tmp_path: Path) -> None:
    with pytest.raises(NotAnalysedError, match="mplab analyze"):
        write_bundle(synthetic(repetitions=1).build(), tmp_path / "b.tar.gz", OPTIONS)


def test_what_is_there_is_never_overwritten(run: Path, bundle: Written) -> None:
    before = bundle.path.read_bytes()
    with pytest.raises(BundleError, match="exists already"):
        write_bundle(run, bundle.path, OPTIONS)
    assert bundle.path.read_bytes() == before
    with pytest.raises(BundleError, match="is inside the run"):
        write_bundle(run, run / "b.tar.gz", OPTIONS)


def test_links_are_refused(run: Path, tmp_path: Path) -> None:
    (run / "logs").mkdir()
    (run / "logs" / "passwd").symlink_to("/etc/passwd")
    with pytest.raises(BundleError, match="logs/passwd: a link"):
        write_bundle(run, tmp_path / "b.tar.gz", OPTIONS)


@pytest.mark.parametrize("before", [0, checksums.CHUNK - 5])
def test_private_keys_stay_at_home(run: Path, tmp_path: Path, before: int) -> None:
    (run / "logs").mkdir()
    (run / "logs" / "hook.log").write_bytes(b"x" * before + b"-----BEGIN EC PRIVATE KEY-----\nMHc\n")
    with pytest.raises(BundleError, match=r"hook.log: holds a private key"):
        write_bundle(run, tmp_path / "b.tar.gz", OPTIONS)
    assert list(tmp_path.glob("*b.tar.gz*")) == []


def test_unfinished_files_are_left_out(run: Path, tmp_path: Path) -> None:
    first = write_bundle(run, tmp_path / "first.tar.gz", OPTIONS)
    (run / ".manifest.json.new").write_text("{")
    (run / "report" / ".index.html.x1y2").write_text("<")
    unfinished = next((run / "cells").iterdir()) / "tables.new"
    unfinished.mkdir()
    (unfinished / "rtt.parquet").write_text("x")
    second = write_bundle(run, tmp_path / "second.tar.gz", OPTIONS)
    assert first.path.read_bytes() == second.path.read_bytes()


def test_a_bundle_of_an_unpacked_bundle_is_the_same(run: Path, bundle: Written, tmp_path: Path) -> None:
    unpack(bundle, tmp_path / "out")
    again = write_bundle(tmp_path / "out" / run.name, tmp_path / "again.tar.gz", OPTIONS)
    assert again.path.read_bytes() == bundle.path.read_bytes()


def test_the_crate_says_what_it_is(run: Path, tmp_path: Path) -> None:
    people = (Author.parse("Ada Lovelace <https://orcid.org/0000-0002-1825-0097>"), Author.parse("Charles B."))
    options = replace(OPTIONS, publication=Publication(people, "CC-BY-4.0"))
    unpacked = opened(write_bundle(run, tmp_path / "b.tar.gz", options), tmp_path / "out")
    document = json.loads((unpacked.run.directory / "ro-crate-metadata.json").read_text())
    graph = {entity["@id"]: entity for entity in document["@graph"]}
    assert len(graph) == len(document["@graph"]), "an identifier twice"
    about = graph["ro-crate-metadata.json"]
    assert about["about"] == {"@id": "./"}
    assert about["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    root = graph["./"]
    assert root["@type"] == "Dataset"
    assert root["datePublished"].startswith("2026-09-21T")
    assert [graph[author["@id"]]["name"] for author in root["author"]] == ["Ada Lovelace", "Charles B."]
    assert graph[root["license"]["@id"]]["@id"] == "https://spdx.org/licenses/CC-BY-4.0"
    sums = checksums.parse(unpacked.run.directory / SUMS)
    parts = {part["@id"] for part in root["hasPart"]}
    assert parts | {"ro-crate-metadata.json"} == set(sums)
    for name in parts - unpacked.derived.keys():
        assert graph[name]["sha256"] == sums[name]
        assert int(graph[name]["contentSize"]) == (unpacked.run.directory / name).stat().st_size
    action = graph[root["mentions"]["@id"]]
    assert action["object"] == {"@id": "experiment.yaml"}
    tool = graph[action["instrument"]["@id"]]
    assert (tool["@type"], tool["softwareVersion"]) == ("SoftwareApplication", "0.1.0")
    assert tool["identifier"] == "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize("text", ["", "<https://x>", "Ada <not a link>", "Ada < >"])
def test_an_author_has_a_name(text: str) -> None:
    with pytest.raises(ValueError, match="NAME"):
        Author.parse(text)


def test_every_broken_file_is_named(run: Path, bundle: Written, tmp_path: Path) -> None:
    unpack(bundle, tmp_path / "out")
    top = tmp_path / "out" / run.name
    (top / "events.jsonl").write_bytes((top / "events.jsonl").read_bytes() + b"\n")
    (top / "report" / "data" / "cells.csv").unlink()
    (top / "report" / "data" / "more.csv").write_text("a\n")
    bad = tmp_path / "bad.tar.gz"
    subprocess.run(["tar", "-czf", str(bad), run.name], cwd=top.parent, check=True)
    with pytest.raises(DamagedBundleError) as caught:
        open_bundle(bad, tmp_path / "out")
    assert [(file.name, file.damage) for file in caught.value.broken] == [
        ("events.jsonl", "differs"),
        ("report/data/cells.csv", "missing"),
        ("report/data/more.csv", "not listed"),
    ]
    assert all(file.name in str(caught.value) for file in caught.value.broken)


def test_raw_data_are_not_taken_for_derived(run: Path, bundle: Written, tmp_path: Path) -> None:
    unpack(bundle, tmp_path / "out")
    top = tmp_path / "out" / run.name
    sums = checksums.parse(top / SUMS)
    derived = {**checksums.parse(top / DERIVED_SUMS), "manifest.json": sums["manifest.json"]}
    (top / DERIVED_SUMS).write_bytes(checksums.render(derived))
    (top / SUMS).write_bytes(checksums.render({**sums, DERIVED_SUMS: checksums.digest(top / DERIVED_SUMS)}))
    bad = tmp_path / "bad.tar.gz"
    subprocess.run(["tar", "-czf", str(bad), run.name], cwd=top.parent, check=True)
    with pytest.raises(BundleError, match=r"manifest\.json is not a file of the analysis"):
        open_bundle(bad, tmp_path / "out")
