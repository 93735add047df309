"""Untrusted archives: unpacking writes only below the target folder."""

import gzip
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mplab.analysis.bundle import archive
from mplab.analysis.bundle.archive import Source, pack, unpack
from mplab.analysis.bundle.checksums import digest_of
from mplab.analysis.errors import BundleError

Change = Callable[[tarfile.TarInfo], None]
NOTHING: Change = lambda _: None  # noqa: E731


def entry(name: str, change: Change = NOTHING) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    change(info)
    return info


def link(kind: bytes, target: str) -> Change:
    def change(made: tarfile.TarInfo) -> None:
        made.type, made.linkname = kind, target

    return change


def kind(kind: bytes) -> Change:
    return link(kind, "")


def written(path: Path, *entries: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for member in entries:
            member.size = 3 if member.isreg() else 0
            tar.addfile(member, io.BytesIO(b"abc") if member.isreg() else None)
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "outer" / "target"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([entry("run/../../evil")], "files of this name are not unpacked"),
        ([entry("../evil")], "files of this name are not unpacked"),
        ([entry("/evil")], "files of this name are not unpacked"),
        ([entry("run/a\\..\\b")], "files of this name are not unpacked"),
        ([entry("run/a"), entry("other/b")], "lies outside of the folder 'run'"),
        ([entry("run/a"), entry("run/a")], "is in it twice"),
        ([entry("run/a"), entry("run/./a")], "is in it twice"),
        ([entry("run/a", link(tarfile.SYMTYPE, "/etc/passwd"))], "neither a file nor a folder"),
        ([entry("run/a"), entry("run/b", link(tarfile.LNKTYPE, "run/a"))], "neither a file nor a folder"),
        ([entry("run/d", link(tarfile.SYMTYPE, "/tmp")), entry("run/d/a")], "neither a file nor a folder"),  # noqa: S108
        ([entry("run/fifo", kind(tarfile.FIFOTYPE))], "neither a file nor a folder"),
        ([entry("run/dev", kind(tarfile.CHRTYPE))], "neither a file nor a folder"),
        ([entry("run/a"), entry("run/a/b")], "cannot be unpacked"),
        ([], "it is empty"),
    ],
)
def test_what_would_leave_the_folder_is_refused(
    entries: list[tarfile.TarInfo], words: str, target: Path, tmp_path: Path
) -> None:
    with pytest.raises(BundleError, match=words) as caught:
        unpack(written(tmp_path / "x.tar.gz", *entries), target)
    assert str(caught.value).startswith(f"{tmp_path / 'x.tar.gz'}: ")
    assert [path.name for path in target.parent.iterdir()] == ["target"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outer", "x.tar.gz"]


def test_modes_and_owners_are_not_kept(target: Path, tmp_path: Path) -> None:
    def change(made: tarfile.TarInfo) -> None:
        made.mode, made.uid = 0o6777, 1234

    unpack(written(tmp_path / "x.tar.gz", entry("run/a", change)), target)
    status = (target / "run" / "a").stat()
    assert status.st_mode & 0o7111 == 0
    assert status.st_uid != 1234


def test_too_much_is_refused_before_it_is_written(
    target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = tmp_path / "bomb.tar.gz"
    with tarfile.open(bomb, "w:gz") as tar:
        info = entry("run/zeros")
        info.size = 50_000_000
        tar.addfile(info, io.BytesIO(bytes(info.size)))
    assert bomb.stat().st_size < 100_000
    with pytest.raises(BundleError, match=r"unpacks to more than 0\.001 GB; --max-size allows more"):
        unpack(bomb, target, max_bytes=1_000_000)
    assert not list(target.rglob("zeros"))
    monkeypatch.setattr(archive, "MAX_FILES", 2)
    with pytest.raises(BundleError, match="more than 2 entries"):
        unpack(written(tmp_path / "x.tar.gz", *(entry(f"run/{n}") for n in range(3))), target)


@pytest.mark.parametrize("type_", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_headers_do_not_fill_the_memory(type_: bytes, target: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        info = entry("run/x", kind(type_))
        info.size = 100_000_000
        tar.addfile(info, io.BytesIO(bytes(info.size)))
    with pytest.raises(BundleError, match="it has a header that is too large"):
        unpack(path, target)


@pytest.mark.parametrize("cut", [0, 5, 200, -20, -4])
def test_what_is_cut_off_is_told(cut: int, target: Path, tmp_path: Path) -> None:
    archived = written(tmp_path / "x.tar.gz", *(entry(f"run/file {n}") for n in range(300))).read_bytes()
    part = tmp_path / "part.tar.gz"
    part.write_bytes(archived[:cut])
    with pytest.raises(BundleError, match=r"part.tar.gz: (cannot be unpacked|it is empty)"):
        unpack(part, target)


@pytest.mark.parametrize("more", [b"more", bytes(20 << 20)])
def test_what_is_behind_the_end_is_told(more: bytes, target: Path, tmp_path: Path) -> None:
    path = written(tmp_path / "x.tar.gz", entry("run/a"))
    path.write_bytes(path.read_bytes() + gzip.compress(more))
    with pytest.raises(BundleError, match="bytes after its end"):
        unpack(path, target)


def test_what_is_no_archive_is_told(target: Path, tmp_path: Path) -> None:
    text = tmp_path / "report.html"
    text.write_text("<html>")
    zipped = tmp_path / "text.gz"
    zipped.write_bytes(gzip.compress(b"words " * 1000))
    for path in (text, zipped, tmp_path / "missing.tar.gz", tmp_path):
        with pytest.raises(BundleError, match="cannot be unpacked"):
            unpack(path, target)


def packed(source: Source) -> bytes:
    file = io.BytesIO()
    pack(file, source, top="run", time_s=1_700_000_000)
    return file.getvalue()


_NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="/\\\0", exclude_categories=("Cc", "Cs")), min_size=1, max_size=40
)


@given(st.dictionaries(_NAMES.filter(lambda name: name.strip(".")), st.binary(max_size=300), min_size=1, max_size=5))
def test_files_of_any_name_come_back(tmp_path_factory: pytest.TempPathFactory, made: dict[str, bytes]) -> None:
    folder = tmp_path_factory.mktemp("any")
    source = Source(folder, ["empty"], {}, {f"folder/{name}": content for name, content in made.items()})
    file = folder / "x.tar.gz"
    file.write_bytes(packed(source))
    assert file.read_bytes() == packed(source)
    (folder / "out").mkdir()
    top = unpack(file, folder / "out")
    assert (top / "empty").is_dir()
    assert {path.name: path.read_bytes() for path in (top / "folder").iterdir()} == made


def test_a_file_that_changes_meanwhile_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"after")
    with pytest.raises(BundleError, match="it changed while it was read"):
        packed(Source(tmp_path, [], {"a": digest_of(b"before")}, {}))


def test_folders_inside_each_other_without_end_are_refused(target: Path, tmp_path: Path) -> None:
    for depth in (100, 1900):
        archive = written(tmp_path / f"{depth}.tar.gz", entry("/".join("a" * depth)))
        with pytest.raises(BundleError, match=r"more than 64 folders inside each other are not unpacked"):
            unpack(archive, target)
    assert not list(target.iterdir())
