"""Send small datagrams at a steady pace to a server that answers each one (nikravesh2016 §3.3)."""

import json
import re
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any

from pydantic import Field, model_validator

from mplab.base.errors import CheckError, StepError
from mplab.base.programs import MPFLEX
from mplab.drivers.phone import Phone
from mplab.format.units import DurationS, SizeBytes, between, format_size
from mplab.scenarios.base import Context, Parameters, Scenario, Session

HOST, PORT = "echo.lab", 7007
SMALLEST_BYTES, LARGEST_BYTES = 56, 1200
"""Smallest and largest payload of a datagram. The smallest has only the probe's header; the largest still fits into one
packet with the headers of an mpflex session."""

MAX_PROBES = 1 << 20
_LOOKUP_TIMEOUT_S = 10.0
_ADDRESS = re.compile(r"\b\d+(\.\d+){3}\b")
_AFTER_S = 4.0
"""Longest wait after sending, s: for the last answers, and for the numbers that the server has counted."""


_SIZE_BOUNDS = between("size", SMALLEST_BYTES, LARGEST_BYTES, "a datagram has {least} to {most}", write=format_size)
_PERIOD_BOUNDS = between("period", 0.001, 10, "from 1 ms to 10 s is needed", write=lambda s: f"{s * 1000:g} ms")


class UdpJitterParameters(Parameters):
    """Parameters of the scenario `udp-jitter`."""

    size: Annotated[SizeBytes, _SIZE_BOUNDS] = Field(100, description="Payload of a datagram, 56 to 1200 B.")
    period: Annotated[DurationS, _PERIOD_BOUNDS] = Field(
        0.01, description="Time between two datagrams of one direction, 1 ms to 10 s."
    )
    duration: DurationS = Field(10.0, description="Time for which datagrams are sent.")

    @model_validator(mode="after")
    def _some_probes(self) -> "UdpJitterParameters":
        probes = self.duration / self.period
        if not 1 <= probes <= MAX_PROBES:
            raise ValueError(
                f"a datagram every {self.period:g} s for {self.duration:g} s: 1 to {MAX_PROBES} are needed"
            )
        return self


class UdpJitterScenario(Scenario[UdpJitterParameters]):
    """Send datagrams to an echo server, which answers each one with a datagram, and measure both directions."""

    name = "udp-jitter"
    title = "Datagrams at a steady pace"
    parameters = UdpJitterParameters

    def time_limit_s(self, parameters: UdpJitterParameters) -> float:
        """Return the longest time for name lookup, sending and the wait after it, plus 5 s."""
        return parameters.duration + _AFTER_S + _LOOKUP_TIMEOUT_S + 5

    def estimate_s(self, parameters: UdpJitterParameters) -> float:
        """Return the time for which datagrams are sent, plus 1 s."""
        return parameters.duration + 1

    def open(self, context: Context, parameters: UdpJitterParameters) -> AbstractContextManager["_Session"]:
        """Return a context manager that only yields the session: nothing needs to be prepared."""
        return nullcontext(_Session(context, parameters))


class _Session(Session[UdpJitterParameters]):
    def run(self) -> None:
        """Send datagrams and receive the answers with ``mpflex udp-jitter``. Write its result as an observation.

        Raises:
            StepError: the program gave no result, e.g. because no answer arrived.
            CheckError: more than 5 % of the datagrams left more than one period too late: the phone was too busy.
        """
        context, parameters = self.context, self.parameters
        address = _address(context.phone)
        argv = [
            *(context.phone.program(MPFLEX), "udp-jitter", "--json", "--target", f"{address}:{PORT}"),
            *("--size", str(parameters.size), "--period", f"{parameters.period * 1e6:.0f}us"),
            *("--seconds", f"{parameters.duration:g}"),
        ]
        if context.socks:
            argv += ["--socks", context.socks]
        answer = context.phone.shell(argv, timeout_s=parameters.duration + _AFTER_S + 5, check=False)
        result = _read(answer.stdout, answer.stderr)
        late_ms = result["late_ms"]["p95"]
        if late_ms > parameters.period * 1000:
            raise CheckError(
                f"udp-jitter: the phone was too busy: one datagram of 20 left {late_ms:g} ms late or later, "
                f"one is due every {parameters.period * 1000:g} ms"
            )
        carrier = "session" if context.socks else "default route"
        context.observe("datagrams", carried_by=carrier, **result)


def _address(phone: Phone) -> str:
    """Let the phone resolve the name of the echo service as for an app. Return its IPv4 address. Raises StepError."""
    # Android has no getent; its ping prints the address before it sends anything.
    script = 'getent ahostsv4 "$1" 2>/dev/null || ping -c 1 -W 1 "$1"'
    answer = phone.shell(["sh", "-c", script, "lookup", HOST], timeout_s=_LOOKUP_TIMEOUT_S, check=False)
    match = _ADDRESS.search(answer.stdout)
    if match is None:
        raise StepError(f"udp-jitter: {HOST} has no address on the phone: {answer.stderr.strip() or 'no answer'}")
    return match.group()


def _read(stdout: str, stderr: str) -> dict[str, Any]:
    """Return the parsed result of ``mpflex udp-jitter`` without the key ``ok``. Raises StepError if ``ok`` is false."""
    try:
        result: dict[str, Any] = json.loads(stdout)
    except ValueError:
        raise StepError(f"udp-jitter: no result: {stderr.strip()[-200:] or 'nothing was printed'}") from None
    if not result.pop("ok"):
        raise StepError(f"udp-jitter: {result.get('error')}")
    return result


SCENARIO = UdpJitterScenario()
