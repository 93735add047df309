"""Build the command line of curl for the scenario `requests`, and parse the reports that curl prints."""

import json
import re
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

HOST, PATH = "img1.search.lab", "/i/1.png"
"""Host and path of the requested object, on one of the lab's web sites. Its server keeps connections open."""
_IDLE = "file:///dev/null"
"""URL of the empty transfers that fill the idle time between rounds. curl can only wait by its option ``--rate``: each
transfer takes one slot of the rate. The connection to the server stays open meanwhile."""
_MARK = "mplab-curl "
_FIELDS = {
    "exit_code": "%{exitcode}",
    "status": '"%{http_code}"',
    "request_bytes": "%{size_request}",
    "response_bytes": "%{size_download}",
    "connections": "%{num_connects}",
    "connect_s": "%{time_connect}",
    "first_byte_s": "%{time_starttransfer}",
    "total_s": "%{time_total}",
    "local_port": '"0%{local_port}"',  # a number even when there was none
    "url": '"%{url_effective}"',
}
_WRITE_OUT = "%{stderr}" + _MARK + "{" + ",".join(f'"{key}":{value}' for key, value in _FIELDS.items()) + "}\\n"
_SCRIPT = '"$0" "$@" >/dev/null'
_NUMBERS = re.compile(r"[?]round=(\d+)&request=(\d+)")
_HOUR_S = 3600.0


@dataclass(frozen=True)
class RequestSchedule:
    """Schedule and sizes of the requests: `rounds` rounds of `requests` requests.

    Attributes:
        period_s: time from the start of one request to the start of the next, s.
        idle_slots: number of periods without a request between two rounds.
        request_bytes: size of a request with its complete header.
        response_bytes: size of an answer's body.
        kept: True: one connection carries all requests; False: each request has a new connection.
        patience_s: time after which curl gives up a request, s.
    """

    rounds: int
    requests: int
    period_s: float
    idle_slots: int
    request_bytes: int
    response_bytes: int
    kept: bool
    patience_s: float

    def urls(self) -> list[str]:
        """Return curl's URL patterns for the rounds and for the idle times between them.

        Numbers have leading zeros, so that all requests have the same size.
        """
        last, urls = len(str(self.requests)), []
        for number in range(1, self.rounds + 1):
            if number > 1 and self.idle_slots:
                urls.append(f"{_IDLE}#[1-{self.idle_slots}]")
            round_number = f"{number:0{len(str(self.rounds))}}"
            urls.append(f"http://{HOST}{PATH}?round={round_number}&request=[{1:0{last}}-{self.requests}]")
        return urls

    def headers(self) -> list[str]:
        """Return the header lines of each request, as arguments of curl.

        A cookie pads the request to `request_bytes`.
        """
        headers = ["User-Agent:", "Accept:", f"Range: bytes=0-{self.response_bytes - 1}"]
        headers += [] if self.kept else ["Connection: close"]
        query = f"?round={'1' * len(str(self.rounds))}&request={'1' * len(str(self.requests))}"
        lines = [f"GET {PATH}{query} HTTP/1.1", f"Host: {HOST}", *headers[2:], "Cookie: pad=", ""]
        return [*headers, f"Cookie: pad={'x' * (self.request_bytes - sum(len(line) + 2 for line in lines))}"]


def argv(plan: RequestSchedule, *, curl: str = "curl", proxy: str = "") -> list[str]:
    """Return the command line that makes curl send all requests.

    Args:
        plan: schedule and sizes of the requests.
        curl: name or path of curl.
        proxy: address of a SOCKS5 server that opens the connections and resolves names; "": no proxy.
    """
    connect = ["--noproxy", "", "--socks5-hostname", proxy] if proxy else ["--noproxy", "*"]
    arguments = ["-q", "--silent", "--show-error", "--no-progress-meter", "--write-out", _WRITE_OUT, *connect]
    arguments += ["--rate", f"{round(_HOUR_S / plan.period_s)}/h", "--max-time", f"{plan.patience_s:g}"]
    for header in plan.headers():
        arguments += ["--header", header]
    return ["sh", "-c", _SCRIPT, curl, *arguments, *plan.urls()]


class Request(BaseModel):
    """One request as curl reports it; times are s from the request's start.

    Attributes:
        connections: number of connections that were opened for the request; 0: it used an open connection.
        total_s: time of the last byte of the answer, or time at which curl gave up.
    """

    model_config = ConfigDict(frozen=True)

    round: int
    number: int
    exit_code: int
    status: int
    request_bytes: int
    response_bytes: int
    connections: int
    connect_s: float
    first_byte_s: float
    total_s: float
    local_port: int


def parse(stderr: str) -> tuple[list[Request], str]:
    """Return the requests that curl's error output reports, and curl's first error message or ""."""
    requests: list[Request] = []
    complaints = []
    for line in stderr.splitlines():
        _, mark, text = line.partition(_MARK)
        report = json.loads(text) if mark else {}
        if query := _NUMBERS.search(report.get("url", "")):
            requests.append(Request.model_validate({**report, "round": query[1], "number": query[2]}))
        elif line.startswith("curl:"):
            complaints.append(line.removeprefix("curl:").strip())
    return requests, complaints[0] if complaints else ""
