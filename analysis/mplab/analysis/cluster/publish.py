"""Results of a worker → the run: each file whole, what tells that all are there last."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from mplab.analysis.cluster.store import Store, beside


def publish(store: Store, run: str, root: Path, folder: str, *, whole: Sequence[str], files: Sequence[str]) -> None:
    """Let a part of a run be as it is in ``root``: what is there and is not in ``root`` is removed.

    So are files that an earlier worker was about to put there when it was killed. Two workers that do the same at the
    same time do no harm: they have the same files.

    Args:
        store: where the run is.
        run: its name.
        root: the run directory in which this worker has worked.
        folder: of the run, in which all of it is.
        whole: folders in it.
        files: files in it; the last one tells others that all is there.
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
