"""Write ``.tar.gz`` archives that are identical for identical content, and unpack untrusted ones safely."""

import gzip
import io
import shutil
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

from mplab.analysis.bundle.checksums import CHUNK, Reader
from mplab.analysis.errors import BundleError

SUFFIX = ".tar.gz"
LEVEL = 6
"""gzip compression level; a higher one gains little, since captures and tables are small or already compressed."""

MAX_FILES = 1_000_000
MAX_BYTES = 10 * 10**9
"""Default limit of the unpacked size, bytes."""

MAX_NAME = 4096
MAX_DEPTH = 64
"""Maximum number of parts in a name; the names in a run have at most 8."""

_MOST_SHOWN = 60
_MOST_PADDING = 16 << 20
_MOST_AT_ONCE = 16 << 20
"""Maximum size of one read, bytes. Content is read in chunks of `CHUNK`; only a tar header could request more."""

_FILE_MODE, _FOLDER_MODE = 0o644, 0o755
_UNREADABLE = (tarfile.TarError, EOFError, zlib.error, UnicodeError, ValueError, RecursionError)


@dataclass(frozen=True)
class Source:
    """Content of an archive: folders and files (name → SHA-256) below ``root``.

    ``made`` maps the names of files that exist only in memory to their contents.
    """

    root: Path
    folders: Sequence[str]
    files: Mapping[str, str]
    made: Mapping[str, bytes]


class _Stream(gzip.GzipFile):
    """A gzip stream that refuses reads larger than `_MOST_AT_ONCE`: a forged header cannot fill the memory."""

    def read(self, size: int | None = -1) -> bytes:
        """Read like `gzip.GzipFile.read`. Raises ValueError when ``size`` exceeds the limit."""
        if size is not None and size > _MOST_AT_ONCE:
            raise ValueError("it has a header that is too large")
        return super().read(size)


def pack(file: IO[bytes], source: Source, *, top: str, time_s: int) -> None:
    """Write an archive with all entries below one folder, sorted by name, without owners, with one modification time.

    Args:
        file: the archive, open for writing.
        source: content of the archive.
        top: name of the folder.
        time_s: modification time of every entry, Unix seconds.

    Raises:
        BundleError: a file has changed since its checksum was computed.
        OSError: a file cannot be read, or the archive cannot be written.
    """
    with (
        gzip.GzipFile(filename="", mode="wb", compresslevel=LEVEL, fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8") as tar,
    ):
        tar.addfile(_entry(top, time_s, folder=True))
        folders = {*source.folders, *_parents([*source.files, *source.made])}
        for name in sorted((*folders, *source.files, *source.made), key=lambda name: PurePosixPath(name).parts):
            entry = _entry(f"{top}/{name}", time_s, folder=name in folders)
            if name in folders:
                tar.addfile(entry)
            elif name in source.made:
                entry.size = len(source.made[name])
                tar.addfile(entry, io.BytesIO(source.made[name]))
            else:
                _add(tar, entry, source.root / name, source.files[name])


def unpack(archive: Path, folder: Path, *, max_bytes: int = MAX_BYTES) -> Path:
    """Unpack an archive into an empty ``folder``, and return the path of its single top-level folder.

    Only regular files and folders are created, and only below ``folder``. Modes and owners in the archive are ignored.

    Raises:
        BundleError: the archive cannot be read, is empty, cut off or damaged, holds another kind of entry or a
            forbidden name, or exceeds a limit.
    """
    try:
        with _Stream(archive) as packed, tarfile.open(fileobj=packed, mode="r:") as tar:
            tops = {_unpack_one(tar, entry, folder) for entry in _within(tar, folder, max_bytes)}
            _check_end(packed)
    except (OSError, *_UNREADABLE) as error:
        raise BundleError(f"{archive}: cannot be unpacked: {_reason(error)}") from error
    except BundleError as error:
        raise BundleError(f"{archive}: {error}") from error
    if not tops:
        raise BundleError(f"{archive}: it is empty")
    return folder / tops.pop()


def _check_end(packed: gzip.GzipFile) -> None:
    """Read the padding after the last entry, so that gzip verifies its checksum.

    Raises:
        BundleError: the padding is longer than `_MOST_PADDING`, or holds other bytes than zeros.
    """
    for _ in range(_MOST_PADDING // CHUNK):
        padding = packed.read(CHUNK)
        if padding.strip(b"\0"):
            break
        if not padding:
            return
    raise BundleError("there are bytes after its end")


def _within(tar: tarfile.TarFile, folder: Path, max_bytes: int) -> Iterator[tarfile.TarInfo]:
    """Yield the archive's entries; before each one, check its size and that it is in the same top-level folder.

    Raises:
        BundleError: there are too many entries, they exceed ``max_bytes`` or the free space, or they are below
            different folders.
    """
    room = shutil.disk_usage(folder).free
    top, total = "", 0
    for count, entry in enumerate(tar, 1):
        total += entry.size
        if count > MAX_FILES:
            raise BundleError(f"it has more than {MAX_FILES} entries")
        if total > max_bytes:
            raise BundleError(f"it unpacks to more than {max_bytes / 1e9:.3g} GB; --max-size allows more")
        if total > room:
            raise BundleError(f"it unpacks to more than the {room / 1e9:.3g} GB that are free in {folder.parent}")
        first = _parts(entry.name)[0]
        if top and first != top:
            raise BundleError(f"{entry.name!r} lies outside of the folder {top!r}")
        top = first
        yield entry


def _unpack_one(tar: tarfile.TarFile, entry: tarfile.TarInfo, folder: Path) -> str:
    """Unpack one entry into ``folder``, and return the name of its top-level folder in the archive.

    Raises:
        BundleError: the entry is neither a file nor a folder, or its file exists already.
    """
    parts = _parts(entry.name)
    path = folder.joinpath(*parts)
    if entry.isdir():
        path.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        return parts[0]
    content = tar.extractfile(entry) if entry.isreg() else None
    if content is None:
        raise BundleError(f"{entry.name!r} is neither a file nor a folder")
    path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    try:
        file = path.open("xb")
    except FileExistsError:
        raise BundleError(f"{entry.name!r} is in it twice") from None
    with file:
        shutil.copyfileobj(content, file, CHUNK)
    return parts[0]


def _parts(name: str) -> tuple[str, ...]:
    """Check an entry's name, and return its parts.

    Raises:
        BundleError: the name is empty, absolute, too long or too deep, or has ``..``, a backslash or a NUL byte.
    """
    parts = PurePosixPath(name).parts
    if len(parts) > MAX_DEPTH:
        raise BundleError(f"{name[:_MOST_SHOWN]!r}…: more than {MAX_DEPTH} folders inside each other are not unpacked")
    if not parts or name.startswith("/") or ".." in parts or "\0" in name or "\\" in name or len(name) > MAX_NAME:
        raise BundleError(f"{name[:MAX_NAME]!r}: files of this name are not unpacked")
    return parts


def _entry(name: str, time_s: int, *, folder: bool) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type = tarfile.DIRTYPE if folder else tarfile.REGTYPE
    entry.mode = _FOLDER_MODE if folder else _FILE_MODE
    entry.mtime = time_s
    return entry


def _add(tar: tarfile.TarFile, entry: tarfile.TarInfo, path: Path, sha256: str) -> None:
    entry.size = path.stat().st_size
    with path.open("rb") as file:
        reader = Reader(file)
        try:
            tar.addfile(entry, cast("IO[bytes]", reader))
        except OSError as error:
            raise error if error.errno else _changed(path) from error  # tarfile raised it: the file became shorter
        if reader.digest != sha256:
            raise _changed(path)


def _changed(path: Path) -> BundleError:
    return BundleError(f"{path}: it changed while it was read. Bundle a run only while no program changes it")


def _parents(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        yield from (path.as_posix() for path in PurePosixPath(name).parents if path.parts)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)
