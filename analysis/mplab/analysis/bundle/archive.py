"""``.tar.gz`` with the same bytes for the same content, and reading one that nobody vouches for."""

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
"""Of compression: captures and tables are small or compressed already."""

MAX_FILES = 1_000_000
MAX_BYTES = 10 * 10**9
"""What is unpacked at most, by default."""

MAX_NAME = 4096
MAX_DEPTH = 64
"""Folders inside each other; those of a run are 8 deep."""

_MOST_SHOWN = 60
_MOST_PADDING = 16 << 20
_MOST_AT_ONCE = 16 << 20
"""Content is read in small parts; nothing but a header would be read at once."""

_FILE_MODE, _FOLDER_MODE = 0o644, 0o755
_UNREADABLE = (tarfile.TarError, EOFError, zlib.error, UnicodeError, ValueError, RecursionError)


@dataclass(frozen=True)
class Source:
    """Where the content of an archive is: files below ``root`` with their SHA-256, and what is made for it alone."""

    root: Path
    folders: Sequence[str]
    files: Mapping[str, str]
    made: Mapping[str, bytes]


class _Stream(gzip.GzipFile):
    """Unpacks, and reads no header into memory that is larger than headers are."""

    def read(self, size: int | None = -1) -> bytes:
        """As that of gzip. Raises ValueError for too much at once."""
        if size is not None and size > _MOST_AT_ONCE:
            raise ValueError("it has a header that is too large")
        return super().read(size)


def pack(file: IO[bytes], source: Source, *, top: str, time_s: int) -> None:
    """Write an archive whose entries are all below one folder, in order of name, of nobody, of one time.

    Args:
        file: to write to.
        source: what goes in.
        top: name of the folder.
        time_s: of every entry, unix seconds.

    Raises:
        BundleError: a file has changed since its checksum was made.
        OSError: something cannot be read or written.
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
    """Unpack an archive into an empty ``folder``; the one folder that is in it.

    Nothing is written outside of ``folder``, nothing but files and folders is made, and nothing keeps a mode or an
    owner of the archive's.

    Raises:
        BundleError: it is no such archive, is cut off, holds anything else, or more than there may be.
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
    """Read what follows the last entry, by which gzip compares its own checksum: zeros alone, and not many."""
    for _ in range(_MOST_PADDING // CHUNK):
        rest = packed.read(CHUNK)
        if rest.strip(b"\0"):
            break
        if not rest:
            return
    raise BundleError("there is something behind its end")


def _within(tar: tarfile.TarFile, folder: Path, max_bytes: int) -> Iterator[tarfile.TarInfo]:
    """The entries, as long as they are not too many, too large, or below different folders."""
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
    """Write one entry; the first part of its name."""
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
    """The parts of a name that stays below where it is unpacked. Raises BundleError for any other."""
    parts = PurePosixPath(name).parts
    if len(parts) > MAX_DEPTH:
        raise BundleError(f"{name[:_MOST_SHOWN]!r}…: more than {MAX_DEPTH} folders inside each other are not unpacked")
    if not parts or name.startswith("/") or ".." in parts or "\0" in name or "\\" in name or len(name) > MAX_NAME:
        raise BundleError(f"{name[:MAX_NAME]!r}: such a name is not unpacked")
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
            raise error if error.errno else _changed(path) from error  # tarfile's own: the file became shorter
        if reader.digest != sha256:
            raise _changed(path)


def _changed(path: Path) -> BundleError:
    return BundleError(f"{path}: it changed while it was read: bundle a run when nothing works on it")


def _parents(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        yield from (path.as_posix() for path in PurePosixPath(name).parents if path.parts)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)
