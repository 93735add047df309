"""The files of dl.lab."""

from pathlib import Path

from mplab.drivers.origin.cache import SIZES_BYTES, STREAM_BYTES, build_files, ensure_file, stream_bytes


def test_the_stream_never_changes() -> None:
    assert stream_bytes(16).hex() == "10a0e0ca41e00a810d64987303e3ee38"


def test_files_are_beginnings_of_one_stream(tmp_path: Path) -> None:
    assert stream_bytes(1001)[:1000] == stream_bytes(1000)
    assert ensure_file(tmp_path, 12_345).read_bytes() == stream_bytes(12_345)


def test_a_cut_file_is_made_again(tmp_path: Path) -> None:
    path = ensure_file(tmp_path, 1000)
    path.write_bytes(b"cut")
    assert ensure_file(tmp_path, 1000).read_bytes() == stream_bytes(1000)


def test_all_files_are_made_whole(cache: Path) -> None:
    folder = build_files(cache)
    stats = {path.name: path.stat() for path in folder.iterdir()}
    assert {name: stat.st_size for name, stat in stats.items()} == {
        **{str(size): size for size in SIZES_BYTES},
        "stream": STREAM_BYTES,
    }
    for stat in stats.values():
        assert stat.st_blocks * 512 >= stat.st_size  # no file is sparse
