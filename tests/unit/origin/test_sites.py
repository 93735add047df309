"""The table of han2015 and the addresses that are derived from it."""

import ipaddress
from collections import Counter

import pytest

from mplab.base.places import ROOT
from mplab.format.sites import VARIANTS, SiteIndex, SiteVariant, delay_by_prefix, load_sites

ROWS = {1: ("news-1", 188, 4450.8, 20.9), 10: ("wiki", 28, 601.2, 8.7), 25: ("market", 49, 2032.8, 2.97)}


def test_the_table_has_25_sites_with_names_of_their_own() -> None:
    assert len({site.slug for site in load_sites()}) == 25


@pytest.mark.parametrize("row", ROWS)
def test_rows_are_those_of_the_paper(row: int) -> None:
    site = load_sites()[row - 1]
    assert (site.slug, site.objects, site.size_kb, site.rtt_ms) == ROWS[row]
    assert site.row == row


def test_kinds_add_up_to_objects() -> None:
    for site in load_sites():
        assert site.text + site.js_css + site.images == site.objects, site.slug


def test_delays_are_half_the_round_trip() -> None:
    delays = delay_by_prefix()
    assert delays["10.65.0.2/32"] == 2.0
    assert delays["10.65.1.0/24"] == pytest.approx(20.9 / 2)
    assert delays["10.65.0.7/32"] == 2.0
    assert len(delays) == 28


def test_every_host_name_has_an_address_of_its_own(index: SiteIndex) -> None:
    several = [variant for variant in VARIANTS if variant.addresses == "several"]
    addresses = Counter(address for site in index for variant in several for address in site.addresses(variant))
    assert set(addresses.values()) == {1}


def test_one_address_for_all_host_names(index: SiteIndex) -> None:
    single = [variant for variant in VARIANTS if variant.addresses == "one"]
    pairs = [set(site.addresses(variant)) for site in index for variant in single]
    assert {len(addresses) for addresses in pairs} == {1}
    others = {address for site in index for variant in VARIANTS for address in site.addresses(variant)}
    assert len(set.union(*pairs)) == len(pairs)
    assert len(others) == len(pairs) + 2 * 2 * sum(len(site.hosts) for site in index)


@pytest.mark.parametrize(
    ("variant", "name", "address"),
    [
        (SiteVariant(), "img1.wiki.lab", "10.65.10.3"),
        (SiteVariant("h1"), "img1.wiki.h1.lab", "10.65.10.131"),
        (SiteVariant("h2", "several", "none"), "img1.wiki.n2.lab", "10.65.42.3"),
        (SiteVariant("h1", "several", "none"), "img1.wiki.n1.lab", "10.65.42.131"),
        (SiteVariant("h2", "one"), "img1.wiki.o2.lab", "10.65.10.100"),
        (SiteVariant("h1", "one"), "img1.wiki.o1.lab", "10.65.10.228"),
        (SiteVariant("h2", "one", "none"), "img1.wiki.b2.lab", "10.65.42.100"),
        (SiteVariant("h1", "one", "none"), "img1.wiki.b1.lab", "10.65.42.228"),
    ],
)
def test_names_and_addresses_of_variants(index: SiteIndex, variant: SiteVariant, name: str, address: str) -> None:
    wiki = index.site("wiki")
    position = wiki.hosts.index("img1")
    assert (wiki.host_names(variant)[position], wiki.addresses(variant)[position]) == (name, address)
    assert variant.url("wiki") == "https://" + name.replace("img1", "www") + "/"
    assert variant in VARIANTS


def test_addresses_without_round_trip_time_have_no_delay(index: SiteIndex) -> None:
    delayed = [ipaddress.ip_network(prefix) for prefix in delay_by_prefix()]
    for site in index:
        for variant in VARIANTS:
            addresses = map(ipaddress.ip_address, site.addresses(variant))
            seen = {any(address in network for network in delayed) for address in addresses}
            assert seen == {variant.origin_rtt == "table"}


def test_no_name_is_longer_than_those_of_http1() -> None:
    assert max(len(variant.suffix) for variant in VARIANTS) == len(SiteVariant("h1").suffix)


def test_the_manual_shows_the_same_table() -> None:
    manual = (ROOT / "docs" / "scenarios.md").read_text()
    for site in load_sites():
        counts = f"{site.objects} | {site.size_kb} | {site.text} | {site.js_css} | {site.images} | {site.rtt_ms:g}"
        assert f"| {site.row} | `{site.slug}` | {site.title} | {counts} |" in manual
