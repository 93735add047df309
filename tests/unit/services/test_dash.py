"""The service `dash`: clips made by the real ffmpeg, configuration read by the real nginx."""

import dataclasses
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.base.machine import CommandResult
from mplab.base.programs import CURL, NGINX
from mplab.drivers.origin.certificates import LabAuthority
from mplab.drivers.services import ServiceContext, load_service

pytestmark = pytest.mark.long

NAMESPACE = {"mpd": "urn:mpeg:dash:schema:mpd:2011"}


@pytest.fixture
def dash() -> SimpleNamespace:
    """The folder ``proxy-docker/mplab/services/dash``."""
    service = load_service("dash")
    modules = {part: sys.modules[f"mplab.services.dash.{part}"] for part in ("service", "content")}
    return SimpleNamespace(SERVICE=service, **modules)


@pytest.fixture
def small(dash: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module with one site, whose clip of 5 s in two qualities is made within 2 s."""
    content = dash.content
    if content.FFMPEG.find() is None:
        pytest.skip("ffmpeg is missing")
    site = dataclasses.replace(content.SITES[0], top=360, clips={"clip-1": 5})
    monkeypatch.setattr(content, "SITES", (site,))
    monkeypatch.setattr(content, "QUALITIES", content.QUALITIES[:2])
    return content


def test_clips_are_the_same_each_time_and_made_once(small: Any, tmp_path: Path) -> None:
    roots = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        roots.append(small.build_content(tmp_path / name))
    first, second = (
        {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()} for root in roots
    )
    assert first == second
    assert small.build_content(tmp_path / "one") == roots[0]
    assert [path.name for path in (tmp_path / "one").iterdir()] == [roots[0].name]


def test_segments_are_as_large_as_their_quality_says(small: Any, tmp_path: Path) -> None:
    clip = small.build_content(tmp_path) / "tube" / "clip-1"
    manifest = ET.parse(clip / "manifest.mpd").getroot()  # noqa: S314 - our own
    assert manifest.get("mediaPresentationDuration") == "PT5.0S"
    videos = manifest.findall(".//mpd:Representation[@mimeType='video/mp4']", NAMESPACE)
    assert [int(video.attrib["height"]) for video in videos] == [240, 360]
    for video, quality in zip(videos, small.QUALITIES, strict=True):
        assert float(video.attrib["bandwidth"]) == pytest.approx(1000 * quality.rate_kbps, rel=0.05)
        sizes = [path.stat().st_size for path in sorted(clip.glob(f"{video.attrib['id']}-0*.m4s"))]
        assert len(sizes) == 3
        assert sum(sizes) * 8 / 5 == pytest.approx(1000 * quality.rate_kbps, rel=0.25)
        assert sizes[2] < sizes[1]


def test_sites_fit_their_segments(dash: SimpleNamespace) -> None:
    for site in dash.content.SITES:
        assert site.segment_s % dash.content.KEY_FRAMES_EVERY_S == 0
        assert site.qualities[-1].height == site.top


def test_an_ffmpeg_that_fails_leaves_nothing(small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = dataclasses.replace(small.QUALITIES[0], width=0)
    monkeypatch.setattr(small, "QUALITIES", (broken,))
    with pytest.raises(LabNotReadyError, match=r"dash: ffmpeg cannot make .*240\.mp4: "):
        small.build_content(tmp_path)
    assert list(tmp_path.iterdir()) == []


class AnsweringHost:
    """A host on which every command gives the same answer."""

    def __init__(self, answer: CommandResult) -> None:
        self._answer = answer
        self.commands: list[Sequence[str]] = []

    def run(self, argv: Sequence[str], **_options: Any) -> CommandResult:
        self.commands.append(argv)
        return self._answer

    def spawn(self, argv: Sequence[str], **_options: Any) -> Any:
        raise NotImplementedError


def context(tmp_path: Path, answer: CommandResult | None = None) -> ServiceContext:
    host = AnsweringHost(answer or CommandResult(0, "", ""))
    (tmp_path / "cache").mkdir(exist_ok=True)
    return ServiceContext(tmp_path, tmp_path / "cache", LabAuthority(tmp_path / "certificates"), host)


def test_nginx_accepts_the_configuration(dash: SimpleNamespace, small: Any, tmp_path: Path) -> None:
    if NGINX.find() is None or not dash.service.LIBRARY.is_file():
        pytest.skip("nginx or dash.js is missing")
    service_context = context(tmp_path)
    dash.SERVICE.prepare(service_context)
    log = tmp_path / "error.log"
    blocks = f"events {{}}\nhttp {{\naccess_log off;\n{dash.SERVICE.nginx(service_context)}\n}}\n"
    (tmp_path / "nginx.conf").write_text(f"pid {tmp_path}/pid;\nerror_log {log};\n{blocks}")
    argv = [str(NGINX.path()), "-t", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"), "-g", f"error_log {log};"]
    result = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert "syntax is ok" in result.stderr
    for host, address in dash.SERVICE.hosts.items():
        assert f"server_name {host};" in blocks
        assert f"listen {address}:443 ssl" in blocks


def test_a_lab_without_dash_js_says_how_to_get_it(
    dash: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dash.service, "LIBRARY", tmp_path / "none.js")
    with pytest.raises(LabNotReadyError, match=r"dash\.js was not found at .*none\.js; install it: make setup"):
        dash.SERVICE.prepare(context(tmp_path))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (CommandResult(7, "", "curl: (7) refused"), r"https://www\.tube\.lab/ does not answer as it should: .*refused"),
        (CommandResult(0, "<html>", ""), r"www\.tube\.lab/ does not .*: 6 characters without player\.js"),
        (CommandResult(0, "player.js", ""), r"media\.tube\.lab/clip-1/manifest\.mpd .* characters without </MPD>"),
    ],
)
def test_what_is_not_as_it_should_be(
    dash: SimpleNamespace, tmp_path: Path, answer: CommandResult, message: str
) -> None:
    if CURL.find() is None:
        pytest.skip("curl is missing")
    with pytest.raises(DeviceError, match=message):
        dash.SERVICE.check(context(tmp_path, answer))


def test_facts_lead_to_the_pages(dash: SimpleNamespace, tmp_path: Path) -> None:
    facts = dash.SERVICE.facts(context(tmp_path))
    assert {url.split("/")[2] for url in facts.values()} <= set(dash.SERVICE.hosts)
    assert set(facts) == {f"{site.name}{of}" for site in dash.content.SITES for of in ("", "_media")}
