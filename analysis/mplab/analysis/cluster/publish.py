"""Copy a worker's results into the run: each file atomically, and last the file that marks the set as complete."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from mplab.analysis.cluster.store import Store, beside


def publish(store: Store, run: str, root: Path, folder: str, *, whole: Sequence[str], files: Sequence[str]) -> None:
    """Replace a part of a run with the files in ``root``; files of that part that are not in ``root`` are removed.

    Temporary files of earlier workers that were killed are removed, too. Two workers may publish the same part at the
    same time: their files are identical.

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
    place = PurePosixPath(folder)
    folders = [place / name for name in whole]

    def is_inside(path: str) -> bool:
        return any(PurePosixPath(path).is_relative_to(inside) for inside in folders)

    def is_ours(path: str) -> bool:
        name = PurePosixPath(path).name
        here = PurePosixPath(path).parent == place
        return is_inside(path) or (here and any(name == file or name.startswith(beside(file)) for file in files))

    stored = [entry.path for entry in store.listing(run, folder) if not entry.folder]
    made = [path.relative_to(root).as_posix() for path in (root / folder).rglob("*") if path.is_file()]
    ours = {path for path in made if is_ours(path)}
    for path in sorted(filter(is_inside, ours)):
        store.replace(run, path, root / path)
    for path in stored:
        if is_ours(path) and path not in ours:
            store.remove(run, path)
    for path in (str(place / name) for name in files):
        if path in ours:
            store.replace(run, path, root / path)
