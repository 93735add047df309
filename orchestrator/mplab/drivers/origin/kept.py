"""Build the web sites once and cache them under a key made from all their inputs."""

import hashlib
import importlib.metadata
import shutil
import tempfile
from pathlib import Path

from mplab.base.deferred import deferred
from mplab.format import sites
from mplab.format.sites import DATA_DIR, SiteIndex, load_sites

DEFAULT_SEED = 2015
_MADE_BY = (
    Path(sites.__file__),
    *(Path(__file__).with_name(f"{name}.py") for name in ("content", "page", "structure", "generate")),
)
"""Source files that determine the sites' content."""


def build_sites(target: Path, seed: int = DEFAULT_SEED) -> SiteIndex:
    """Generate all sites in ``target/sites-<key>/<host name>/<path>`` unless the folder exists; return their index.

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
    """Return a hash of the code, the table of sites, the numpy version and the seed."""
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
