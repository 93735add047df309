"""Small datagrams at a steady pace to a server that answers each (nikravesh2016 §3.3)."""

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
"""The probe's own head, and what fits into one packet behind every header of a session."""

MAX_PROBES = 1 << 20
_LOOKUP_TIMEOUT_S = 10.0
_ADDRESS = re.compile(r"\b\d+(\.\d+){3}\b")
_AFTER_S = 4.0
"""Longest wait for the last answers and for the server's totals."""


_SIZE_BOUNDS = between("size", SMALLEST_BYTES, LARGEST_BYTES, "a datagram has {least} to {most}", write=format_size)
_PERIOD_BOUNDS = between("period", 0.001, 10, "from 1 ms to 10 s is needed", write=lambda s: f"{s * 1000:g} ms")


class UdpJitterParameters(Parameters):
    """Parameters of the scenario `udp-jitter`."""

    size: Annotated[SizeBytes, _SIZE_BOUNDS] = Field(100, description="Payload of a datagram.")
    period: Annotated[DurationS, _PERIOD_BOUNDS] = Field(0.01, description="Between two datagrams of one direction.")
    duration: DurationS = Field(10.0, description="Of the sending.")

    @model_validator(mode="after")
    def _some_probes(self) -> "UdpJitterParameters":
        probes = self.duration / self.period
        if not 1 <= probes <= MAX_PROBES:
            raise ValueError(
                f"a datagram every {self.period:g} s for {self.duration:g} s: 1 to {MAX_PROBES} are needed"
            )
        return self


class UdpJitterScenario(Scenario[UdpJitterParameters]):
    """`Scenario`: a flow of datagrams in both directions."""

    name = "udp-jitter"
    title = "Datagrams at a steady pace"
    parameters = UdpJitterParameters

    def time_limit_s(self, parameters: UdpJitterParameters) -> float:
        """The sending, what is waited for behind it, and the lookup before it."""
        return parameters.duration + _AFTER_S + _LOOKUP_TIMEOUT_S + 5

    def estimate_s(self, parameters: UdpJitterParameters) -> float:
        """The sending, and a round trip or two."""
        return parameters.duration + 1

    def open(self, context: Context, parameters: UdpJitterParameters) -> AbstractContextManager["_Session"]:
        """Prepare nothing."""
        return nullcontext(_Session(context, parameters))


class _Session(Session[UdpJitterParameters]):
    def run(self) -> None:
        """Send and listen; StepError when nothing came back, CheckError when the phone could not keep the pace."""
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
        found = _read(answer.stdout, answer.stderr)
        late_ms = found["late_ms"]["p95"]
        if late_ms > parameters.period * 1000:
            raise CheckError(
                f"udp-jitter: the phone was too busy: one datagram of 20 left {late_ms:g} ms late or later, "
                f"one is due every {parameters.period * 1000:g} ms"
            )
        way = "session" if context.socks else "default route"
        context.observe("datagrams", carried_by=way, **found)


def _address(phone: Phone) -> str:
    """Of the echo service: looked up over the transport, as an app would."""
    # Android has no getent; its ping says the address before it sends anything.
    script = 'getent ahostsv4 "$1" 2>/dev/null || ping -c 1 -W 1 "$1"'
    answer = phone.shell(["sh", "-c", script, "lookup", HOST], timeout_s=_LOOKUP_TIMEOUT_S, check=False)
    found = _ADDRESS.search(answer.stdout)
    if found is None:
        raise StepError(f"udp-jitter: {HOST} has no address on the phone: {answer.stderr.strip() or 'no answer'}")
    return found.group()


def _read(stdout: str, stderr: str) -> dict[str, Any]:
    """What ``mpflex udp-jitter`` found, without its verdict."""
    try:
        found: dict[str, Any] = json.loads(stdout)
    except ValueError:
        raise StepError(f"udp-jitter: no result: {stderr.strip()[-200:] or 'nothing was printed'}") from None
    if not found.pop("ok"):
        raise StepError(f"udp-jitter: {found.get('error')}")
    return found


SCENARIO = UdpJitterScenario()
