"""A player without a screen: downloads a file and plays it by the clock, as a video player would.

``python -m orchestrator.device.apps.player URL --rate-kbps 1000 --ahead 2`` writes, whenever something changes and at
least every quarter of a second, ``state=buffering position=3.25 clock=0:03``, and ends when all has been played.
"""

import argparse
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass

_STEP_S = 0.05
_REPORT_S = 0.25
_CHUNK_BYTES = 16_384
_PATIENCE_S = 60.0


@dataclass
class _Download:
    """What has come so far."""

    received: int = 0
    ended: bool = False
    error: str = ""


def main() -> int:
    """Exit code: 0, or 1 when the download failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--rate-kbps", type=float, default=1000.0)
    parser.add_argument("--ahead", type=float, default=2.0, help="seconds buffered before it plays")
    parser.add_argument("--seconds", default="", help="play at most so much")
    given = parser.parse_args()
    download = _Download()
    threading.Thread(target=_fetch, args=(given.url, download), daemon=True).start()
    return _play(download, given.rate_kbps, given.ahead, float(given.seconds or "inf"))


def _fetch(url: str, download: _Download) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_PATIENCE_S) as answer:
            while chunk := answer.read1(_CHUNK_BYTES):
                download.received += len(chunk)
    except (OSError, ValueError) as error:
        download.error = str(error)
    download.ended = True


def _play(download: _Download, rate_kbps: float, ahead_s: float, length_s: float) -> int:
    position, state, reported = 0.0, "", 0.0
    before = time.monotonic()
    while not download.error:
        now = time.monotonic()
        passed, before = now - before, now
        end_s = min(download.received * 8 / 1000 / rate_kbps, length_s)
        whole = download.ended or end_s >= length_s
        if state == "playing":
            position = min(end_s, position + passed)
        enough = end_s - position > (0.0 if state == "playing" else ahead_s)
        if whole and position >= end_s:
            return 0
        shown = "playing" if enough or whole else "buffering"
        if shown != state or now - reported >= _REPORT_S:
            state, reported = shown, now
            clock = f"{int(position) // 60}:{int(position) % 60:02}"
            sys.stdout.write(f"state={state} position={position:.2f} clock={clock}\n")
            sys.stdout.flush()
        time.sleep(_STEP_S)
    sys.stdout.write(f"{download.error}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
