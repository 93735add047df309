"""The table of han2015 and the addresses that are derived from it."""

from collections import Counter

import pytest

from mplab.base.places import ROOT
from mplab.format.sites import SiteIndex, delay_by_prefix, load_sites

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
    addresses = Counter(address for site in index for protocol in ("h2", "h1") for address in site.addresses(protocol))
    assert set(addresses.values()) == {1}


def test_names_say_the_protocol(index: SiteIndex) -> None:
    wiki = index.site("wiki")
    assert wiki.host_names("h2")[0] == "www.wiki.lab"
    assert wiki.host_names("h1")[0] == "www.wiki.h1.lab"
    assert wiki.addresses("h2")[0] == "10.65.10.1"
    assert wiki.addresses("h1")[0] == "10.65.10.129"
    assert wiki.url("h1") == "https://www.wiki.h1.lab/"


def test_the_manual_shows_the_same_table() -> None:
    manual = (ROOT / "docs" / "scenarios.md").read_text()
    for site in load_sites():
        counts = f"{site.objects} | {site.size_kb} | {site.text} | {site.js_css} | {site.images} | {site.rtt_ms:g}"
        assert f"| {site.row} | `{site.slug}` | {site.title} | {counts} |" in manual
