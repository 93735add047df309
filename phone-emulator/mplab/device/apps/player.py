"""Play sound or video without a screen and a loudspeaker: download it, and play it in real time as an app does.

This program imports nothing of mplab, so that it starts quickly.

``player.py URL --rate-kbps 1000`` plays a file or an endless stream. With ``--media BASE`` it plays an adaptive clip,
``BASE/<last part of URL>/manifest.mpd``, in the quality that the last segment's throughput allows. With ``--tracks`` it
plays the tracks of the music service at URL one after the other, in random order, and requests them in byte ranges.

It prints ``state=buffering position=3.25 clock=0:03 what=480p`` at every change of state and every quarter of a second,
and ends when everything has been played.
"""

import argparse
import http.client
import json
import math
import random
import re
import ssl
import sys
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

_STEP_S = 0.05
_REPORT_S = 0.25
_CHUNK_BYTES = 16_384
_PATIENCE_S = 60.0
_MOST_AHEAD_S = 30.0
"""Play time in the buffer above which nothing more is requested, s."""
_SAFE = 0.8
"""Largest share of the measured throughput that the bitrate of the next segment may use."""
_USED = ("http", "https")


@dataclass
class Buffer:
    """The player's buffer: how much has been downloaded and played.

    Attributes:
        seconds: play time that has been downloaded, s.
        position: play time that has been played, s.
        ended: True: the download is complete or has failed.
        error: reason why the download has failed; "": it has not.
        label: quality of the last downloaded segment, or name of the track that is downloaded.
    """

    seconds: float = 0.0
    position: float = 0.0
    ended: bool = False
    error: str = ""
    label: str = ""

    def wait_for_room(self) -> None:
        """Wait until the play time in the buffer is below its limit."""
        while self.seconds - self.position > _MOST_AHEAD_S:
            time.sleep(_STEP_S)


@dataclass
class Web:
    """HTTP client that keeps one connection to each host open."""

    cacert: str
    _connections: dict[str, http.client.HTTPConnection] = field(default_factory=dict)

    def pieces(self, url: str, headers: dict[str, str] | None = None) -> Iterator[bytes]:
        """Request `url`, and yield the body in pieces as they arrive. Raises OSError if the body is not complete."""
        parts = urlsplit(url)
        connection = self._connections.get(parts.netloc)
        if connection is None:
            connection = self._connections[parts.netloc] = self._connect(parts.scheme, parts.netloc)
        try:
            yield from _body(connection, url, headers or {})
        except (OSError, http.client.HTTPException) as error:
            self._connections.pop(parts.netloc).close()
            raise OSError(str(error) or type(error).__name__) from error

    def get(self, url: str, headers: dict[str, str] | None = None) -> bytes:
        """Request `url`, and return the complete body. Raises OSError."""
        return b"".join(self.pieces(url, headers))

    def _connect(self, scheme: str, host: str) -> http.client.HTTPConnection:
        if scheme == "https":
            context = ssl.create_default_context(cafile=self.cacert or None)
            return http.client.HTTPSConnection(host, timeout=_PATIENCE_S, context=context)
        return http.client.HTTPConnection(host, timeout=_PATIENCE_S)


def _body(connection: http.client.HTTPConnection, url: str, headers: dict[str, str]) -> Iterator[bytes]:
    parts = urlsplit(url)
    connection.request("GET", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), headers=headers)
    answer = connection.getresponse()
    if answer.status not in {200, 206}:
        raise OSError(f"{url}: HTTP status {answer.status}")
    while piece := answer.read1(_CHUNK_BYTES):
        yield piece
    missing = answer.length
    answer.close()  # otherwise the connection accepts no further request
    if missing:
        raise OSError(f"{url}: cut, {missing} bytes are missing")


@dataclass(frozen=True)
class Representation:
    """One quality of a clip's video or sound: a Representation of the MPD.

    Attributes:
        name: attribute ``id`` of the Representation.
        initialization: template of the initialization segment's URL.
        media: template of the media segments' URLs.
        first: number of the first media segment.
        segment_s: duration of a segment, s.
    """

    name: str
    kbps: float
    initialization: str
    media: str
    first: int
    segment_s: float

    def segment(self, number: int) -> str:
        """Return the URL of a media segment, relative to the manifest; `number` counts from 0."""
        return _filled(self.media, self.name, self.first + number)


def main() -> int:
    """Run the program. Return the exit code: 0, or 1 if the download failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--rate-kbps", type=float, default=1000.0)
    parser.add_argument("--ahead", type=float, default=2.0, help="seconds buffered before it plays")
    parser.add_argument("--seconds", default="", help="longest play time, s")
    parser.add_argument("--media", default="", help="URL of the adaptive clips")
    parser.add_argument("--tracks", action="store_true", help="play the tracks of a music service")
    parser.add_argument("--chunk", type=int, default=128_000, help="bytes of a track in one request")
    parser.add_argument("--cacert", default="")
    options = parser.parse_args()
    if urlsplit(options.url).scheme not in _USED:
        parser.error(f"{options.url!r} is no address of the web")
    buffer, web = Buffer(), Web(options.cacert)

    def fetch() -> None:
        if options.media:
            clip = urlsplit(options.url).path.rstrip("/").rpartition("/")[2]
            fetch_clip(f"{options.media.rstrip('/')}/{clip}/manifest.mpd", buffer, web)
        elif options.tracks:
            fetch_tracks(options.url.rstrip("/"), buffer, web, options.rate_kbps, options.chunk)
        else:
            fetch_file(options.url, buffer, web, options.rate_kbps)

    threading.Thread(target=_guarded, args=(fetch, buffer), daemon=True).start()
    return play(buffer, options.ahead, float(options.seconds or "inf"))


def _guarded(fetch: Callable[[], None], buffer: Buffer) -> None:
    try:
        fetch()
    except (OSError, ValueError, KeyError, ET.ParseError) as error:
        buffer.error = str(error) or type(error).__name__
    buffer.ended = True


def fetch_file(url: str, buffer: Buffer, web: Web, rate_kbps: float) -> None:
    """Download a file or a stream to the buffer. `rate_kbps`, kbit/s, converts bytes to play time."""
    for piece in web.pieces(url):
        buffer.seconds += len(piece) * 8 / 1000 / rate_kbps


def fetch_clip(manifest: str, buffer: Buffer, web: Web) -> None:
    """Download the video and sound segments of a clip in turn. Throughput selects the video quality.

    Args:
        manifest: URL of the MPD.
        buffer: buffer to fill.
        web: HTTP client.
    """
    length_s, video, sound = read_manifest(web.get(manifest).decode())
    chosen, begun = video[0], set[str]()
    for number in range(math.ceil(length_s / chosen.segment_s)):
        buffer.wait_for_room()
        for quality in (chosen, *sound[:1]):
            if quality.name not in begun:
                begun.add(quality.name)
                web.get(urljoin(manifest, _filled(quality.initialization, quality.name, 0)))
        began = time.monotonic()
        size = len(web.get(urljoin(manifest, chosen.segment(number))))
        kbps = size * 8 / 1000 / max(time.monotonic() - began, 1e-6)
        for quality in sound[:1]:
            web.get(urljoin(manifest, quality.segment(number)))
        buffer.label = chosen.name
        buffer.seconds = min(length_s, (number + 1) * chosen.segment_s)
        chosen = max(
            (quality for quality in video if quality.kbps <= _SAFE * kbps),
            key=lambda quality: quality.kbps,
            default=video[0],
        )


def fetch_tracks(url: str, buffer: Buffer, web: Web, rate_kbps: float, chunk: int) -> None:
    """Download all tracks again and again in random order, in ranges of `chunk` bytes.

    An answer that is shorter than requested ends the track.
    """
    names: list[str] = json.loads(web.get(f"{url}/tracks/index.json"))
    while True:
        for name in random.sample(names, len(names)):
            buffer.label = name
            received = 0
            while True:
                buffer.wait_for_room()
                came = 0
                for piece in web.pieces(
                    f"{url}/tracks/{name}.mp3", {"Range": f"bytes={received}-{received + chunk - 1}"}
                ):
                    came += len(piece)
                    buffer.seconds += len(piece) * 8 / 1000 / rate_kbps
                received += came
                if came < chunk:
                    break


def read_manifest(text: str) -> tuple[float, list[Representation], list[Representation]]:
    """Return length of the clip, s, video qualities (lowest first) and sound qualities from the text of an MPD.

    Raises:
        ValueError: the manifest has no video, no duration, or no segment templates.
    """
    root = ET.fromstring(text)  # noqa: S314 - Python's expat refuses what expands
    space = root.tag.partition("}")[0] + "}"
    representations: dict[str, list[Representation]] = {"video": [], "audio": []}
    for group in root.iter(f"{space}AdaptationSet"):
        for element in group.iter(f"{space}Representation"):
            template = element.find(f"{space}SegmentTemplate")
            if template is None:
                template = group.find(f"{space}SegmentTemplate")
            kind = (element.get("mimeType") or group.get("mimeType") or "").partition("/")[0]
            if template is None or kind not in representations:
                raise ValueError("the manifest has a representation without a template of its segments")
            representations[kind].append(
                Representation(
                    name=element.get("id", ""),
                    kbps=float(element.get("bandwidth", "0")) / 1000,
                    initialization=template.get("initialization", ""),
                    media=template.get("media", ""),
                    first=int(template.get("startNumber", "1")),
                    segment_s=float(template.get("duration", "0")) / float(template.get("timescale", "1")),
                )
            )
    if not representations["video"]:
        raise ValueError("the manifest has no video")
    duration = re.fullmatch(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?", root.get("mediaPresentationDuration", ""))
    if duration is None:
        raise ValueError("the manifest has no duration of the clip")
    hours, minutes, seconds = (float(digits or 0) for digits in duration.groups())
    length_s = hours * 3600 + minutes * 60 + seconds
    return length_s, sorted(representations["video"], key=lambda quality: quality.kbps), representations["audio"]


def _filled(template: str, name: str, number: int) -> str:
    text = template.replace("$RepresentationID$", name)
    return re.sub(r"\$Number(?:%0(\d+)d)?\$", lambda match: f"{number:0{match[1] or 1}d}", text)


def play(buffer: Buffer, ahead_s: float, length_s: float) -> int:
    """Play the content of the buffer in real time. Print the player's state at each change and every `_REPORT_S`.

    Args:
        buffer: the buffer, which another thread fills.
        ahead_s: play time that must be in the buffer before playback starts or continues, s.
        length_s: longest play time, s.

    Returns:
        The exit code of the program: 0 at the end of the content, 1 if the download failed.
    """
    state, reported = "", 0.0
    before = time.monotonic()
    while not buffer.error:
        now = time.monotonic()
        passed, before = now - before, now
        end_s = min(buffer.seconds, length_s)
        complete = buffer.ended or end_s >= length_s
        if state == "playing":
            buffer.position = min(end_s, buffer.position + passed)
        enough = end_s - buffer.position > (0.0 if state == "playing" else ahead_s)
        if complete and buffer.position >= end_s:
            return 0
        shown = "playing" if enough or complete else "buffering"
        if shown != state or now - reported >= _REPORT_S:
            state, reported = shown, now
            clock = f"{int(buffer.position) // 60}:{int(buffer.position) % 60:02}"
            sys.stdout.write(f"state={state} position={buffer.position:.2f} clock={clock} what={buffer.label}\n")
            sys.stdout.flush()
        time.sleep(_STEP_S)
    sys.stdout.write(f"{buffer.error}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
