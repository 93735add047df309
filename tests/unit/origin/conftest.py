"""The generated sites, made only once for all tests."""

from pathlib import Path

import pytest

from mplab.drivers.origin.cache import build_sites
from mplab.format.sites import SiteIndex


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("origin")


@pytest.fixture(scope="session")
def index(cache: Path) -> SiteIndex:
    return build_sites(cache)


@pytest.fixture(scope="session")
def certificates(index: SiteIndex) -> dict[str, Path]:
    return {site.slug: Path(f"/certificates/{site.slug}.pem") for site in index}
