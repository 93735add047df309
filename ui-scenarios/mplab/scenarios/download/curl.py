"""Build command lines for curl on the phone, parse its output, and compute checksums of the files of ``dl.lab``.

The files are prefixes of one fixed stream of random bytes.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from mplab.base.deferred import deferred

Server = Literal["dl", "video", "store", "messages"]
"""Names of one server, by which the rules of a policy can distinguish apps."""
MAX_SIZE_BYTES = 100_000_000
WHOLE_FILES_BYTES = frozenset(
    {
        1_000,
        10_000,
        50_000,
        100_000,
        250_000,
        500_000,
        1_000_000,
        2_000_000,
        5_000_000,
        10_000_000,
        20_000_000,
    }
)
"""Sizes with a separate file, ``/<bytes>``; other sizes are a byte range of ``/stream``."""
_STREAM_SEED = 2015


@cache
def stream_sha256(size: int) -> str:
    """Return the SHA-256 of the first `size` bytes of the stream (raw 64-bit outputs of PCG64, little endian)."""
    with deferred("slow to import, needed in cells alone"):
        import numpy as np
    words = np.random.PCG64(_STREAM_SEED).random_raw(-(-size // 8))
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
    """A transfer as curl reports it; times in seconds since its start.

    Attributes:
        flow: number in its bundle, from 1; 0: a single file.
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
        """Return the fields of an observation."""
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
    """Return a command that downloads a file and prints its SHA-256. curl's report goes to stderr.

    Args:
        size: size of the file, bytes.
        timeout_s: longest time of the download.
        server: name of the server.
        curl: command that calls curl.
        proxy: SOCKS5 server that connects, and resolves the server's name; "": none.
    """
    url, source = _source(size, server)
    limits = ["--max-time", f"{timeout_s:.1f}"]
    return ["sh", "-c", _FILE_SCRIPT, curl, *_COMMON, *_way(proxy), *limits, *source, url]


@dataclass(frozen=True)
class Flows:
    """Order of a bundle's flows: one every `every_s` seconds or, if `every_s` is 0, `concurrent` at a time."""

    count: int
    concurrent: int = 1
    every_s: float = 0.0

    def arguments(self) -> list[str]:
        """Return curl's arguments for this order."""
        if self.every_s:
            return ["--rate", f"{round(_HOUR_S / self.every_s)}/h"]
        return ["--parallel", "--parallel-immediate", "--parallel-max", str(self.concurrent)]


def bundle_argv(
    flows: Flows, size: int, timeout_s: float, server: Server = "dl", *, curl: str = "curl", proxy: str = ""
) -> list[str]:
    """Return a command that downloads the files of a bundle and prints the time before and after.

    Args:
        flows: number and order of the flows.
        size: size of each file, bytes.
        timeout_s: longest time of each flow.
        server: name of the server.
        curl: command that calls curl.
        proxy: as for `file_argv`.
    """
    url, source = _source(size, server)
    limits = ["--max-time", f"{timeout_s:.1f}", "--output", "/dev/null"]
    arguments = [*_COMMON, *_way(proxy), *flows.arguments(), *limits, *source, f"{url}?flow=[1-{flows.count}]"]
    return ["sh", "-c", _BUNDLE_SCRIPT, curl, *arguments]


def _way(proxy: str) -> list[str]:
    """Return curl's proxy arguments. Without a proxy, the host's proxy variables must be ignored: they would bypass the
    phone's interfaces.
    """
    return ["--noproxy", "", "--socks5-hostname", proxy] if proxy else ["--noproxy", "*"]


def _source(size: int, server: Server) -> tuple[str, list[str]]:
    if size in WHOLE_FILES_BYTES:
        return f"http://{server}.lab/{size}", []
    return f"http://{server}.lab/stream", ["--range", f"0-{size - 1}"]


def parse(stderr: str) -> tuple[list[Transfer], str]:
    """Return the transfers in curl's error output, by flow, and its first error message, "" for none."""
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
    """Return the difference of the two times that the bundle's script prints, seconds."""
    before, after = (line.partition(".") for line in stdout.split())
    # Integer arithmetic: a float of unix time resolves only some 100 ns.
    return (int(after[0]) - int(before[0])) + (int(after[2]) - int(before[2])) / 1e9
