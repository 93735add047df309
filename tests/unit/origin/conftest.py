"""The generated sites, made once for all tests."""

from pathlib import Path

import pytest

from orchestrator.origin import SiteIndex, build_sites


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> SiteIndex:
    return build_sites(tmp_path_factory.mktemp("origin"))


@pytest.fixture(scope="session")
def certificates(index: SiteIndex) -> dict[str, Path]:
    return {site.slug: Path(f"/certificates/{site.slug}.pem") for site in index}
