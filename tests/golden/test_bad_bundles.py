"""Every unusable bundle gives exactly its message in ``bundles/``."""

import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from mplab.analysis.bundle.checksums import digest_of, render
from mplab.analysis.bundle.read import open_bundle
from mplab.analysis.errors import BundleError

GOLDEN = Path(__file__).parent / "bundles"
TOP = "20260922T101500Z-demo-abc123"
FILES = {"manifest.json": b'{"format": 1, "run_id": "x", "experiment": {"name": "x"}}', "derived.sha256": b""}
SUMS = render({name: digest_of(content) for name, content in FILES.items()})


def summed(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {**files, "SHA256SUMS": render({name: digest_of(content) for name, content in files.items()})}


def manifest(run_id: str = "x", **experiment: object) -> bytes:
    return json.dumps({"format": 1, "run_id": run_id, "experiment": {"name": "x", **experiment}}).encode()


BAD: dict[str, Mapping[str, bytes]] = {
    "changed-file": {**FILES, "SHA256SUMS": SUMS, "manifest.json": b"{}"},
    "missing-file": {"derived.sha256": b"", "SHA256SUMS": SUMS},
    "more-files": {**FILES, "SHA256SUMS": SUMS, **{f"cells/{n:02}": b"" for n in range(25)}},
    "no-bundle": {"README.md": b"# Something else\n"},
    "no-checksums-of-what-was-made": summed({"manifest.json": FILES["manifest.json"]}),
    "not-a-run": summed({"derived.sha256": b""}),
    "newer-format": summed({**FILES, "manifest.json": b'{"format": 2}'}),
    "run-id-is-a-path": summed({**FILES, "manifest.json": manifest(run_id="../../../elsewhere")}),
    "scenario-is-a-path": summed(
        {**FILES, "manifest.json": manifest(scenarios=[{"label": "x", "name": "/proc/self/cwd/again/run/logs/x"}])}
    ),
    "label-steers-the-terminal": summed(
        {**FILES, "manifest.json": manifest(transports=[{"label": "x\x1b[2J", "name": "mptcp"}])}
    ),
    "nested-folders": {"/".join("a" * 100): b""},
    "sums-cut-off": {**FILES, "SHA256SUMS": SUMS[:90]},
    "sums-twice": {**FILES, "SHA256SUMS": SUMS + SUMS},
    "outside": {**FILES, "../../evil": b"x"},
    "raw-as-derived": summed({**FILES, "derived.sha256": b"0" * 64 + b"  manifest.json\n"}),
}


def write(files: Mapping[str, bytes], path: Path) -> None:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"{TOP}/{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


@pytest.mark.parametrize("name", [*BAD, "no-archive", "not-there"])
def test_a_bad_bundle_gets_its_message(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path(f"{name}.tar.gz")
    if name in BAD:
        write(BAD[name], file)
    elif name == "no-archive":
        file.write_text("<html>not found</html>\n")
    with pytest.raises(BundleError) as caught:
        open_bundle(file, Path("out"))
    assert caught.value.exit_code == 2
    message = f"{caught.value}\n"
    expected = GOLDEN / f"{name}.txt"
    if request.config.getoption("--update-golden", default=False):
        expected.write_text(message, encoding="utf-8")
    assert message == expected.read_text(encoding="utf-8")
    assert not list(tmp_path.parent.glob("evil"))


def test_every_message_belongs_to_a_bundle() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == {*BAD, "no-archive", "not-there"}
