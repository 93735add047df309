"""Build command lines for curl on the phone, parse its output, and compute checksums of the downloaded files.

The files are prefixes of one fixed stream of random bytes, which the server ``dl.lab`` offers. A bundle is a group of
downloads of equal size; each download is one of its flows.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from mplab.base.deferred import deferred
from mplab.drivers.origin.cache import SIZES_BYTES, STREAM_SEED

Server = Literal["dl", "video", "store", "messages"]
"""Host names (without ``.lab``) of the one download server: with them, the rules of a policy can distinguish apps."""


@cache
def stream_sha256(size: int) -> str:
    """Return the SHA-256, in hexadecimal, of the first `size` bytes of the server's stream of random bytes.

    The stream consists of raw 64-bit outputs of PCG64, little endian.
    """
    with deferred("slow to import, needed in cells only"):
        import numpy as np
    words = np.random.PCG64(STREAM_SEED).random_raw(-(-size // 8))
    return hashlib.sha256(np.asarray(words, dtype="<u8").tobytes()[:size]).hexdigest()


_MARK = "mplab-curl "
_HOUR_S = 3600.0
_FIELDS = {
    "exit": "%{exitcode}",
    "status": '"%{http_code}"',
    "bytes": "%{size_download}",
    "namelookup_s": "%{time_namelookup}",
    "connect_s": "%{time_connect}",
    "first_byte_s": "%{time_starttransfer}",
    "total_s": "%{time_total}",
    "local_port": '"%{local_port}"',
    "url": '"%{url_effective}"',
}
_WRITE_OUT = "%{stderr}" + _MARK + "{" + ",".join(f'"{key}":{value}' for key, value in _FIELDS.items()) + "}\\n"
# -q: ignore ~/.curlrc.
_COMMON = ("-q", "--silent", "--show-error", "--no-progress-meter", "--write-out", _WRITE_OUT)

_FILE_SCRIPT = '"$0" "$@" | sha256sum'
_BUNDLE_SCRIPT = 'date +%s.%N; "$0" "$@"; date +%s.%N'


@dataclass(frozen=True)
class Transfer:
    """One download as curl reports it; times are s from its start.

    Attributes:
        flow: number of the flow in its bundle, from 1; 0: the download of a single file.
        local_port: TCP port on the phone; 0: unknown.
    """

    flow: int
    exit_code: int
    status: int
    bytes: int
    namelookup_s: float
    connect_s: float
    first_byte_s: float
    total_s: float
    local_port: int

    def fields(self) -> dict[str, float]:
        """Return the report as fields of an observation, without flow and exit code."""
        return {
            "bytes": self.bytes,
            "status": self.status,
            "namelookup_s": self.namelookup_s,
            "connect_s": self.connect_s,
            "first_byte_s": self.first_byte_s,
            "total_s": self.total_s,
            "local_port": self.local_port,
        }


def file_argv(size: int, timeout_s: float, server: Server = "dl", *, curl: str = "curl", proxy: str = "") -> list[str]:
    """Return a command that downloads a file and prints its SHA-256 to stdout, and curl's report to stderr.

    Args:
        size: size of the file, bytes.
        timeout_s: longest time of the download, s.
        server: host name of the server.
        curl: name or path of curl.
        proxy: address of a SOCKS5 server that resolves the server's name and connects to it; "": no proxy.
    """
    url, source = _source(size, server)
    limits = ["--max-time", f"{timeout_s:.1f}"]
    return ["sh", "-c", _FILE_SCRIPT, curl, *_COMMON, *_way(proxy), *limits, *source, url]


@dataclass(frozen=True)
class Flows:
    """Number and pace of the flows in a bundle: one every `every_s` s or, if that is 0, `concurrent` at a time."""

    count: int
    concurrent: int = 1
    every_s: float = 0.0

    def arguments(self) -> list[str]:
        """Return the options of curl that set this pace."""
        if self.every_s:
            return ["--rate", f"{round(_HOUR_S / self.every_s)}/h"]
        return ["--parallel", "--parallel-immediate", "--parallel-max", str(self.concurrent)]


def bundle_argv(
    flows: Flows, size: int, timeout_s: float, server: Server = "dl", *, curl: str = "curl", proxy: str = ""
) -> list[str]:
    """Return a command that downloads the files of a bundle. It prints wall-clock time before and after to stdout.

    Args:
        flows: number and pace of the flows.
        size: size of each file, bytes.
        timeout_s: longest time of each flow, s.
        server: host name of the server.
        curl: name or path of curl.
        proxy: address of a SOCKS5 server, as for `file_argv`; "": no proxy.
    """
    url, source = _source(size, server)
    limits = ["--max-time", f"{timeout_s:.1f}", "--output", "/dev/null"]
    arguments = [*_COMMON, *_way(proxy), *flows.arguments(), *limits, *source, f"{url}?flow=[1-{flows.count}]"]
    return ["sh", "-c", _BUNDLE_SCRIPT, curl, *arguments]


def _way(proxy: str) -> list[str]:
    """Return the options of curl for a SOCKS5 server at the address `proxy`; "": no proxy.

    Without a proxy, curl ignores the proxy variables of the environment: they would bypass the phone's interfaces.
    """
    return ["--noproxy", "", "--socks5-hostname", proxy] if proxy else ["--noproxy", "*"]


def _source(size: int, server: Server) -> tuple[str, list[str]]:
    if size in SIZES_BYTES:
        return f"http://{server}.lab/{size}", []
    return f"http://{server}.lab/stream", ["--range", f"0-{size - 1}"]


def parse(stderr: str) -> tuple[list[Transfer], str]:
    """Return the downloads that curl's error output reports, sorted by flow, and curl's first error message or ""."""
    transfers, complaints = [], []
    for line in stderr.splitlines():
        _, mark, report = line.partition(_MARK)
        if mark:
            transfers.append(_transfer(json.loads(report)))
        elif line.startswith("curl:"):
            complaints.append(line.removeprefix("curl:").strip())
    return sorted(transfers, key=lambda transfer: transfer.flow), complaints[0] if complaints else ""


def _transfer(report: dict[str, str | float]) -> Transfer:
    flow = re.search(r"[?]flow=(\d+)", str(report["url"]))
    return Transfer(
        flow=int(flow.group(1)) if flow else 0,
        exit_code=int(report["exit"]),
        status=int(report["status"]),
        bytes=int(report["bytes"]),
        namelookup_s=float(report["namelookup_s"]),
        connect_s=float(report["connect_s"]),
        first_byte_s=float(report["first_byte_s"]),
        total_s=float(report["total_s"]),
        local_port=int(report["local_port"] or 0),
    )


def bundle_time_s(stdout: str) -> float:
    """Return the duration of a bundle, s: the difference of the two times that its command (`bundle_argv`) prints."""
    before, after = (line.partition(".") for line in stdout.split())
    # Integer arithmetic: a float of unix time resolves only some 100 ns.
    return (int(after[0]) - int(before[0])) + (int(after[2]) - int(before[2])) / 1e9
