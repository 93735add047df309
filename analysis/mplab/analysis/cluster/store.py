"""Read and write runs in a folder of this machine, or in one that fsspec can reach; publish a worker's results."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from filecmp import cmp
from pathlib import Path, PurePosixPath
from typing import Any, Protocol
from urllib.parse import urlsplit

import fsspec

from mplab.analysis.errors import StoreError
from mplab.base.deferred import deferred

MANIFEST = "manifest.json"
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss", "memory"})
"""Protocols that write files atomically. With others, a file is written under a temporary name, then renamed."""
SSH = frozenset({"sftp", "ssh"})


@dataclass(frozen=True)
class Entry:
    """A file (``size`` in bytes) or folder of a run; ``path`` is relative to the run, with ``/`` between its parts."""

    path: str
    size: int = 0
    folder: bool = False


class Store(Protocol):
    """Reads and writes the runs in a folder. A store can be pickled and sent to another process.

    Each method raises `StoreError` or `OSError` when the operation fails; a retry can succeed.
    """

    def runs(self) -> list[str]:
        """Return the names of the runs in the folder, sorted."""

    def where(self, run: str) -> str:
        """Return a run's path or URL, for messages."""

    def listing(self, run: str, inner: str = "") -> list[Entry]:
        """Return all files and folders in a run, or in its folder ``inner``; an empty list if that does not exist."""

    def bring(self, run: str, entries: Sequence[Entry], target: Path) -> None:
        """Link or copy entries of a run into the local folder ``target``, for reading only."""

    def replace(self, run: str, path: str, source: Path) -> None:
        """Replace the file ``path`` of a run with the local file ``source``, atomically."""

    def remove(self, run: str, path: str) -> None:
        """Remove the file ``path`` of a run; a missing file is no error."""


def store_at(where: str) -> Store:
    """Return the store for the folder at a path or URL.

    Raises:
        StoreError: fsspec does not know the protocol, or lacks a package that it needs for it.
    """
    scheme, separator, path = where.partition("://")
    if not separator:
        return LocalStore(str(Path(where).absolute()))
    if scheme == "file":
        return LocalStore(path)
    try:
        fsspec.get_filesystem_class(scheme)
    except (ValueError, ImportError) as error:
        raise StoreError(f"{public(where)}: {error}") from error
    return RemoteStore(where.rstrip("/"))


def public(url: str) -> str:
    """Return a URL without the user name and the password in it."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if "@" in parts.netloc else url


def beside(name: str) -> str:
    """Return the prefix of the names of temporary files that will be renamed to ``name``."""
    return f".{name}."


@dataclass(frozen=True)
class LocalStore:
    """A folder of runs that has the same path on every worker."""

    root: str

    def runs(self) -> list[str]:
        """Return the names of the runs in the folder, sorted."""
        return sorted(path.parent.name for path in Path(self.root).glob(f"*/{MANIFEST}"))

    def where(self, run: str) -> str:
        """Return a run's path, for messages."""
        return str(Path(self.root, run))

    def listing(self, run: str, inner: str = "") -> list[Entry]:
        """Return the files and folders in a run, or in its folder ``inner``."""
        run_dir = Path(self.root, run)
        entries = []
        for folder, folders, files in os.walk(run_dir / inner):
            folders.sort()
            here = Path(folder)
            entries += [Entry((here / name).relative_to(run_dir).as_posix(), folder=True) for name in folders]
            for path in (here / name for name in sorted(files)):
                with suppress(FileNotFoundError):  # it was replaced since the folder was listed
                    entries.append(Entry(path.relative_to(run_dir).as_posix(), path.stat().st_size))
        return entries

    def bring(self, run: str, entries: Sequence[Entry], target: Path) -> None:
        """Link the entries of a run into ``target``, so that captures are not copied."""
        for entry in entries:
            path = target / entry.path
            (path if entry.folder else path.parent).mkdir(parents=True, exist_ok=True)
            if not entry.folder:
                path.symlink_to(Path(self.root, run, entry.path))

    def replace(self, run: str, path: str, source: Path) -> None:
        """Replace the file ``path`` of a run with ``source``, atomically; a file with the same content is kept."""
        target = Path(self.root, run, path)
        if target.is_file() and cmp(source, target, shallow=False):
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=beside(target.name))
        os.close(descriptor)
        try:
            shutil.copyfile(source, name)
            shutil.copymode(source, name)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def remove(self, run: str, path: str) -> None:
        """Remove the file ``path`` of a run, if it exists, and the folders that become empty."""
        Path(self.root, run, path).unlink(missing_ok=True)
        with suppress(OSError):
            for folder in PurePosixPath(path).parents:
                Path(self.root, run, folder).rmdir()


@dataclass(frozen=True)
class RemoteStore:
    """A folder of runs that fsspec can reach; credentials are in the fsspec configuration of each worker."""

    url: str

    def runs(self) -> list[str]:
        """Return the names of the runs in the folder, sorted."""
        with self._opened() as (system, root):
            inside = [info for info in system.ls(root, detail=True) if info["type"] == "directory"]
            names = [PurePosixPath(info["name"]).name for info in inside]
            return sorted(name for name in names if system.exists(f"{root}/{name}/{MANIFEST}"))

    def where(self, run: str) -> str:
        """Return a run's URL without user name and password, for messages."""
        return f"{public(self.url)}/{run}"

    def listing(self, run: str, inner: str = "") -> list[Entry]:
        """Return the files and folders in a run, or in its folder ``inner``."""
        with self._opened() as (system, root):
            base = f"{root}/{run}"
            top = f"{base}/{inner}".rstrip("/")
            infos = system.find(top, withdirs=True, detail=True)
        entries = []
        for path, info in sorted(infos.items()):
            name = str(path).rstrip("/")
            if name != top:
                folder = info["type"] == "directory"
                entries.append(Entry(name.removeprefix(f"{base}/"), 0 if folder else int(info["size"] or 0), folder))
        return entries

    def bring(self, run: str, entries: Sequence[Entry], target: Path) -> None:
        """Copy the entries of a run into ``target``."""
        files = [entry for entry in entries if not entry.folder]
        for entry in entries:
            path = target / entry.path
            (path if entry.folder else path.parent).mkdir(parents=True, exist_ok=True)
        with self._opened() as (system, root):
            if files:
                copies = [str(target / entry.path) for entry in files]
                system.get([f"{root}/{run}/{entry.path}" for entry in files], copies)

    def replace(self, run: str, path: str, source: Path) -> None:
        """Replace the file ``path`` of a run with ``source``, atomically."""
        with self._opened() as (system, root):
            target = PurePosixPath(f"{root}/{run}/{path}")
            protocols = {system.protocol} if isinstance(system.protocol, str) else set(system.protocol)
            if protocols & OBJECT_STORES:
                system.put_file(str(source), str(target))
                return
            system.makedirs(str(target.parent), exist_ok=True)
            fresh = str(target.with_name(f"{beside(target.name)}{secrets.token_hex(4)}"))
            try:
                system.put_file(str(source), fresh)
                system.mv(fresh, str(target))
            except BaseException:
                with suppress(Exception):
                    system.rm_file(fresh)
                raise

    def remove(self, run: str, path: str) -> None:
        """Remove the file ``path`` of a run, if it exists."""
        with self._opened() as (system, root), suppress(FileNotFoundError):
            system.rm_file(f"{root}/{run}/{path}")

    @contextmanager
    def _opened(self) -> Iterator[tuple[Any, str]]:
        """Yield the file system, with an empty listing cache, and the path of the folder in it.

        Raises:
            StoreError: the file system cannot be opened, or an operation in the block fails.
        """
        system: Any = None
        try:
            system, root = fsspec.url_to_fs(self.url, **self._options())
            system.invalidate_cache()
            yield system, root.rstrip("/")
        except Exception as error:
            if system is not None:  # otherwise a broken connection would be used again
                type(system).clear_instance_cache()
            raise StoreError(f"{public(self.url)}: {type(error).__name__}: {error}") from error

    def _options(self) -> dict[str, object]:
        scheme = self.url.partition("://")[0]
        if scheme not in SSH or "host_key_policy" in fsspec.config.conf.get(scheme, {}):
            return {}
        with deferred("needs paramiko, which is slow to import"):
            from mplab.analysis.cluster.knownhosts import KnownHosts
        return {"host_key_policy": KnownHosts}


def publish(store: Store, run: str, root: Path, folder: str, *, whole: Sequence[str], files: Sequence[str]) -> None:
    """Replace a part of a run in the store (``whole`` and ``files``) with the files that a worker wrote below ``root``.

    Files of this part that are not below ``root`` are removed from the store, and so are temporary files of workers
    that were killed earlier. Two workers may publish the same part at the same time: their files are identical.

    Args:
        store: store of the run.
        run: name of the run.
        root: run directory in which this worker has worked.
        folder: folder of the run that contains the part.
        whole: folders in ``folder`` to replace.
        files: files in ``folder`` to replace, written after the folders; the last one marks the part as complete.

    Raises:
        StoreError, OSError: the store cannot be listed or written.
    """
    base = PurePosixPath(folder)
    folders = [base / name for name in whole]

    def is_inside(path: str) -> bool:
        return any(PurePosixPath(path).is_relative_to(inside) for inside in folders)

    def is_ours(path: str) -> bool:
        name = PurePosixPath(path).name
        here = PurePosixPath(path).parent == base
        return is_inside(path) or (here and any(name == file or name.startswith(beside(file)) for file in files))

    stored = [entry.path for entry in store.listing(run, folder) if not entry.folder]
    written = [path.relative_to(root).as_posix() for path in (root / folder).rglob("*") if path.is_file()]
    ours = {path for path in written if is_ours(path)}
    for path in sorted(filter(is_inside, ours)):
        store.replace(run, path, root / path)
    for path in stored:
        if is_ours(path) and path not in ours:
            store.remove(run, path)
    for path in (str(base / name) for name in files):
        if path in ours:
            store.replace(run, path, root / path)
