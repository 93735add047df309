"""Runs in a local folder and in a folder that fsspec reaches: readers and writers see no difference."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest

from mplab.analysis.cluster.store import LocalStore, RemoteStore, Store, public, publish, store_at
from mplab.analysis.errors import StoreError

Reader = Callable[[str], dict[str, bytes]]


@pytest.fixture(params=["folder", "file://", "memory://"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Reader]]:
    """A store with a run, and a function that reads all files of a part of it."""
    files = {"manifest.json": b"{}", "cells/a/cell.json": b"{}", "cells/a/tables/lo/acks.parquet": b"old"}
    files |= {"cells/a/scores.json": b"old", "cells/a/.scores.json.x1": b"half", "cells/a/x.pcapng": b"123"}
    url = "memory://runs" if request.param == "memory://" else str(tmp_path / "runs")
    system, root = fsspec.url_to_fs(url)
    for name, content in files.items():
        system.pipe_file(f"{root}/first/{name}", content) if "memory" in url else _write(
            Path(root, "first", name), content
        )

    def read(part: str) -> dict[str, bytes]:
        paths = system.find(f"{root}/first/{part}")
        return {path.removeprefix(f"{root}/first/"): system.cat_file(path) for path in paths}

    yield store_at(f"file://{url}" if request.param == "file://" else url), read
    if "memory" in url:
        system.rm(root, recursive=True)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def test_a_run_is_listed_and_brought(place: tuple[Store, Reader], tmp_path: Path) -> None:
    store, read = place
    assert store.runs() == ["first"]
    assert store.where("first").endswith("runs/first")
    entries = store.listing("first", "cells/a")
    assert {e.path: e.size for e in entries if not e.folder} == {name: len(c) for name, c in read("cells").items()}
    assert {entry.path for entry in entries if entry.folder} == {"cells/a/tables", "cells/a/tables/lo"}
    assert store.listing("first", "cells/b") == []
    store.bring("first", entries, tmp_path / "here")
    assert (tmp_path / "here/cells/a/x.pcapng").read_bytes() == b"123"
    assert (tmp_path / "here/cells/a/tables/lo").is_dir()


def test_results_take_the_place_of_what_was_there(place: tuple[Store, Reader], tmp_path: Path) -> None:
    store, read = place
    mine = tmp_path / "mine"
    _write(mine / "cells/a/tables/acks.parquet", b"new")
    _write(mine / "cells/a/scores.json", b"newer")
    _write(mine / "cells/a/x.pcapng", b"not to be touched")
    publish(store, "first", mine, "cells/a", whole=["tables"], files=["scores.json"])
    wanted = {"cells/a/cell.json": b"{}", "cells/a/x.pcapng": b"123"}
    wanted |= {"cells/a/tables/acks.parquet": b"new", "cells/a/scores.json": b"newer"}
    assert read("cells") == wanted
    (mine / "cells/a/scores.json").unlink()
    publish(store, "first", mine, "cells/a", whole=[], files=["scores.json"])
    del wanted["cells/a/scores.json"]
    assert read("cells") == wanted


def test_what_is_the_same_already_is_left_alone_in_a_folder(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    _write(tmp_path / "run" / "a", b"x")
    _write(tmp_path / "new", b"x")
    before = (tmp_path / "run" / "a").stat().st_ino
    store.replace("run", "a", tmp_path / "new")
    assert (tmp_path / "run" / "a").stat().st_ino == before
    _write(tmp_path / "new", b"y")
    store.replace("run", "a", tmp_path / "new")
    assert (tmp_path / "run" / "a").read_bytes() == b"y"
    assert os.listdir(tmp_path / "run") == ["a"]  # noqa: PTH208 - hidden ones, too


@pytest.mark.parametrize(("url", "words"), [("nothing://x/runs", "nothing"), ("s3://bucket/runs", "s3fs")])
def test_what_fsspec_does_not_know_is_said_so(url: str, words: str) -> None:
    with pytest.raises(StoreError, match=words):
        store_at(url)


def test_passwords_are_not_shown() -> None:
    assert public("sftp://lab:secret@host:22/runs") == "sftp://host:22/runs"
    with pytest.raises(StoreError) as refused:
        RemoteStore("sftp://lab:secret@127.0.0.1:1/runs").runs()
    assert "secret" not in str(refused.value)
