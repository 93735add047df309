"""The generated sites, made only once for all tests."""

from pathlib import Path

import pytest

from mplab.drivers.origin.cache import build_sites
from mplab.format.sites import VARIANTS, SiteIndex


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("origin")


@pytest.fixture(scope="session")
def index(cache: Path) -> SiteIndex:
    return build_sites(cache)


@pytest.fixture(scope="session")
def certificates(index: SiteIndex) -> dict[str, Path]:
    names = {variant.certificate(site.slug) for site in index for variant in VARIANTS}
    return {name: Path(f"/certificates/{name}.pem") for name in names}
