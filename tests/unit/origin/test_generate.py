"""The generated sites: as large as the table requires, complete, valid, and always the same."""

import io
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from mplab.drivers.origin.cache import build_sites
from mplab.drivers.origin.generate import OBJECTS_ELEMENT, share_out
from mplab.format.sites import VARIANTS, BuiltSite, SiteIndex, SiteVariant, load_sites

REFERENCE = re.compile(r"//([a-z0-9.-]+\.lab)(/[a-z]/[0-9]+\.[a-z]+)")
FETCHED = re.compile(r'"(/d/[0-9]+\.json)"')


def content(index: SiteIndex, site: BuiltSite, variant: SiteVariant, host: str, path: str) -> bytes:
    name = path.removeprefix("/") or "index.html"
    return (index.root / variant.host_name(host, site.slug) / name).read_bytes()


def test_totals_are_within_one_percent_of_the_table(index: SiteIndex) -> None:
    for row, site in zip(load_sites(), index, strict=True):
        assert len(site.objects) == pytest.approx(row.objects, rel=0.01)
        assert site.size_bytes == pytest.approx(row.size_kb * 1000, rel=0.01)


def test_kinds_are_those_of_the_table(index: SiteIndex) -> None:
    for row, site in zip(load_sites(), index, strict=True):
        kinds = Counter(item.kind for item in site.objects)
        assert kinds["page"] + kinds["frame"] + kinds["data"] == row.text
        assert kinds["js"] + kinds["css"] == row.js_css
        assert kinds["image"] == row.images


@pytest.mark.parametrize("variant", VARIANTS)
def test_files_have_the_size_that_the_index_says(index: SiteIndex, variant: SiteVariant) -> None:
    for site in index:
        for item in site.objects:
            assert len(content(index, site, variant, item.host, item.path)) == item.size_bytes


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_object_is_referred_to_once_and_every_reference_exists(index: SiteIndex, variant: SiteVariant) -> None:
    for site in index:
        references: Counter[tuple[str, str]] = Counter()
        for item in site.objects:
            if item.kind in {"page", "css", "js"}:
                text = content(index, site, variant, item.host, item.path).decode()
                references.update(REFERENCE.findall(text))
            if item.kind == "js":
                references.update((variant.host_name("www", site.slug), path) for path in FETCHED.findall(text))
        wanted = Counter((variant.host_name(item.host, site.slug), item.path) for item in site.objects[1:])
        assert references == wanted, site.slug


def test_a_page_lists_its_objects(index: SiteIndex) -> None:
    for site in index:
        text = content(index, site, SiteVariant("h1"), "www", "/").decode()
        listing = re.search(rf'id="{OBJECTS_ELEMENT}">(.*?)</script>', text)
        assert listing is not None
        listed = {(host, path, size) for host, paths in json.loads(listing[1]).items() for path, size in paths.items()}
        assert listed == {(item.host, item.path, item.size_bytes) for item in site.objects}


def test_large_sites_find_objects_late(index: SiteIndex) -> None:
    objects = index.site("news-1").objects
    kinds = {item.path: item.kind for item in objects}
    parents: Counter[tuple[str | None, str]] = Counter((kinds.get(item.parent), item.kind) for item in objects)
    for pair in [("css", "image"), ("js", "image"), ("js", "js"), ("js", "data"), ("page", "frame")]:
        assert parents[pair] > 0, pair


def test_hosts_grow_with_the_site(index: SiteIndex) -> None:
    assert index.site("search").hosts == ("www", "img1")
    assert len(index.site("wiki").hosts) == 3
    assert len(index.site("news-1").hosts) == 6


def test_images_decode(index: SiteIndex) -> None:
    site = index.site("wiki")
    for item in site.objects:
        if item.kind == "image":
            with Image.open(io.BytesIO(content(index, site, SiteVariant(), item.host, item.path))) as image:
                image.load()
                assert image.format == "PNG"
                assert image.width >= 32


def test_data_is_json(index: SiteIndex) -> None:
    site = index.site("news-2")
    data = [item for item in site.objects if item.kind == "data"]
    assert data
    for item in data:
        assert list(json.loads(content(index, site, SiteVariant(), item.host, item.path))) == ["d"]


def test_sizes_have_a_heavy_tail(index: SiteIndex) -> None:
    sizes = sorted(item.size_bytes for item in index.site("news-1").objects)
    assert sizes[-1] > 8 * sizes[len(sizes) // 2]


def test_the_same_seed_gives_the_same_bytes(index: SiteIndex, tmp_path: Path) -> None:
    again = build_sites(tmp_path)
    assert again.sites == index.sites
    for site in list(index)[:5]:
        for item in site.objects:
            assert content(index, site, SiteVariant(), item.host, item.path) == content(
                again, site, SiteVariant(), item.host, item.path
            )


def test_another_seed_gives_another_place_and_other_sizes(index: SiteIndex, tmp_path: Path) -> None:
    other = build_sites(tmp_path, seed=7)
    assert other.root.name != index.root.name
    assert other.sites != index.sites


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    first = build_sites(tmp_path)
    marker = first.root / "marker"
    marker.touch()
    assert build_sites(tmp_path) == first
    assert marker.exists()
    assert [path.name for path in tmp_path.iterdir()] == [first.root.name]


@given(
    floors=st.lists(st.integers(1, 500), min_size=1, max_size=50),
    extra=st.integers(0, 10**6),
    seed=st.integers(0, 2**32),
)
def test_shares_add_up_and_keep_their_floors(floors: list[int], extra: int, seed: int) -> None:
    weights = np.exp(np.random.default_rng(seed).standard_normal(len(floors)))
    sizes = share_out(sum(floors) + extra, floors, weights)
    assert sum(sizes) == sum(floors) + extra
    assert all(size >= floor for size, floor in zip(sizes, floors, strict=True))


def test_too_small_a_total_is_refused() -> None:
    with pytest.raises(ValueError, match="2 objects need 20 bytes, more than 19"):
        share_out(19, [10, 10], np.array([1.0, 1.0]))
