"""Load a web page and all of its objects with curl, like a browser without a screen.

This program imports nothing of mplab. ``page.py URL`` prints ``bytes=B objects=N seconds=S`` when all is loaded. A page
of the lab lists its objects (``<script id="mplab-objects">``: host label → path → bytes). They are loaded in parallel,
and their lengths are checked. Of any other page, only the HTML file is loaded.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

_PARALLEL = 12
_LISTING = re.compile(r'<script[^>]*id="mplab-objects"[^>]*>(.*?)</script>', re.DOTALL)


def main() -> int:
    """Run the program. Return the exit code: 0, or 1 if an object was not loaded completely."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--cacert", default="")
    parser.add_argument("--devtools", default="")
    parser.add_argument("--proxy", default="")
    options = parser.parse_args()
    if options.devtools:
        browser = [sys.executable, "-m", "mplab.device.chromium"]
        os.execv(browser[0], [*browser, "load", options.devtools, options.url])  # noqa: S606 - no shell is wanted
    proxy = ["--proxy", f"http://{options.proxy}"] if options.proxy else ["--noproxy", "*"]
    curl = ["curl", "-q", *proxy, "-sS", "--location", "--fail"]
    curl += ["--cacert", options.cacert] if options.cacert else []
    began = time.monotonic()
    page = subprocess.run([*curl, options.url], capture_output=True, check=False)
    if page.returncode:
        return _failed(page.stderr.decode(errors="replace"))
    objects = listed(options.url, page.stdout.decode(errors="replace"))
    total = len(page.stdout)
    if objects:
        urls = [word for url, _ in objects for word in ("-o", "/dev/null", url)]
        written = ["-w", "%{url_effective} %{size_download}\n"]
        # curl does not limit the number of URLs; the kernel limits the length of the command line (execve(2)).
        downloads = subprocess.run(
            [*curl, "--parallel", "--parallel-immediate", "--parallel-max", str(_PARALLEL), *written, *urls],
            capture_output=True,
            text=True,
            check=False,
        )
        came = dict(line.rsplit(" ", 1) for line in downloads.stdout.splitlines() if " " in line)
        missing = [url for url, size in objects if came.get(url) != str(size)]
        if downloads.returncode or missing:
            return _failed(downloads.stderr or f"{len(missing)} objects did not come whole: {missing[0]}")
        total += sum(size for _, size in objects)
    seconds = time.monotonic() - began
    sys.stdout.write(f"bytes={total} objects={1 + len(objects)} seconds={seconds:.3f}\n")
    return 0


def listed(url: str, page: str) -> Sequence[tuple[str, int]]:
    """Return URL and length, bytes, of each object that a page lists, without the page itself.

    Args:
        url: URL of the page.
        page: HTML of the page.
    """
    listing = _LISTING.search(page)
    parts = urlsplit(url)
    domain = parts.netloc.partition(".")[2]
    hosts: dict[str, dict[str, int]] = json.loads(listing[1]) if listing else {}
    return [
        (f"{parts.scheme}://{host}.{domain}{path}", size)
        for host, paths in hosts.items()
        for path, size in paths.items()
        if (f"{host}.{domain}", path) != (parts.netloc, parts.path or "/")
    ]


def _failed(message: str) -> int:
    sys.stdout.write((message.strip().splitlines() or ["nothing came"])[-1] + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
