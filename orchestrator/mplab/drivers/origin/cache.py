"""Generate the origin's content once: web sites, cached under a hash of all their inputs, and files to download.

The files of ``dl.lab`` are prefixes of one fixed stream of random bytes, so that a receiver can check every byte.
"""

import hashlib
import importlib.metadata
import os
import shutil
import tempfile
from pathlib import Path

from mplab.base.deferred import deferred
from mplab.format import sites
from mplab.format.sites import DATA_DIR, SiteIndex, load_sites

DEFAULT_SEED = 2015
_MADE_BY = (
    Path(sites.__file__),
    *(Path(__file__).with_name(f"{name}.py") for name in ("content", "structure", "generate")),
)
"""Source files that determine the sites' content."""


def build_sites(target: Path, seed: int = DEFAULT_SEED) -> SiteIndex:
    """Generate all sites in ``target/sites-<hash>/<host name>/<path>`` unless the folder exists; return their index.

    The same inputs give the same bytes. The folder is always complete, because it gets its name only at the end.
    """
    root = target / f"sites-{_key(seed)}"
    if not root.exists():
        with deferred("slow to import, needed once"):
            from mplab.drivers.origin.generate import build_site
        target.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix="sites-", suffix=".partial", dir=target))
        try:
            partial.chmod(0o755)
            built = tuple(build_site(partial, site, seed) for site in load_sites())
            SiteIndex(partial, built).save()
            _rename(partial, root)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return SiteIndex.load(root)


def _key(seed: int) -> str:
    """Return a hash of the inputs from which all sites are generated: code, table of sites, numpy version, seed."""
    digest = hashlib.sha256(f"{seed} {importlib.metadata.version('numpy')}".encode())
    for path in [DATA_DIR / "sites.yaml", *_MADE_BY]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _rename(partial: Path, root: Path) -> None:
    try:
        partial.rename(root)
    except OSError:
        if not root.exists():  # otherwise another process has just made the same folder
            raise


STREAM_SEED = 2015
STREAM_NAME = "stream"
STREAM_BYTES = 100_000_000
"""Size of the file ``/stream``, bytes; requests for byte ranges give any smaller size."""
SIZES_BYTES = (
    1_000,
    10_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
)
"""Sizes of the files ``/<size>``, bytes."""


def stream_bytes(size: int) -> bytes:
    """Return the first `size` bytes of the random stream that the files of ``dl.lab`` contain.

    The stream consists of raw PCG64 outputs, 64 bit, little endian, which are equal in every version of numpy.
    """
    with deferred("slow to import, needed once"):
        import numpy as np
    words = np.random.PCG64(STREAM_SEED).random_raw(-(-size // 8))
    return np.asarray(words, dtype="<u8").tobytes()[:size]


def ensure_file(folder: Path, size: int, name: str = "") -> Path:
    """Make the file ``folder/<size>`` (or ``folder/<name>``) unless it exists with `size` bytes; return its path."""
    path = folder / (name or str(size))
    if not path.exists() or path.stat().st_size != size:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".", delete=False) as partial:
            partial.write(stream_bytes(size))
        Path(partial.name).chmod(0o644)
        os.replace(partial.name, path)  # noqa: PTH105 - both names are complete
    return path


def build_files(target: Path) -> Path:
    """Make all files of ``dl.lab`` in ``target/files``; return that folder."""
    folder = target / "files"
    for size in SIZES_BYTES:
        ensure_file(folder, size)
    ensure_file(folder, STREAM_BYTES, STREAM_NAME)
    return folder
