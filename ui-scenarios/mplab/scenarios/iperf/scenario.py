"""Measure throughput over the transport with iperf3, up and down, one test after the other."""

import json
import math
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

from pydantic import Field, field_validator

from mplab.base.errors import StepError
from mplab.base.programs import Program
from mplab.format.units import DurationS
from mplab.scenarios.base import Context, Parameters, Scenario, Session

Direction = Literal["up", "down"]

SERVICE = "iperf"
IPERF3 = Program("iperf3", ("iperf3",), ("--version",), "iperf3", "throughput, both ways")
MAX_TEST_S = 120.0
"""Longest test of an app in baerts2015 §4.3, s."""
_CONNECT_TIMEOUT_S = 5.0
_BUSY, _BUSY_S, _POLL_S = "the server is busy", 5.0, 0.1
"""Message of iperf3 while its server still ends the previous test; longest wait for the end of that test, s; time
between two attempts, s."""
_AFTER_S = 15.0
"""Time after a test's duration to deliver data queued in the links and to exchange the results, s."""


class IperfParameters(Parameters):
    """Parameters of the scenario `iperf`."""

    directions: tuple[Direction, ...] = Field(
        ("up", "down"), min_length=1, description="Directions, one test each, in this order; up: from the phone."
    )
    duration: DurationS = Field(10.0, ge=1, le=50, description="Duration of each test, 1 to 50 whole seconds.")
    parallel: int = Field(1, ge=1, le=32, description="Number of concurrent connections.")
    pause: DurationS = Field(1.0, description="Rest between two tests.")

    @field_validator("directions")
    @classmethod
    def _once_each(cls, directions: tuple[Direction, ...]) -> tuple[Direction, ...]:
        if len(set(directions)) < len(directions):
            raise ValueError("a direction is listed twice")
        return directions

    @field_validator("duration")
    @classmethod
    def _whole(cls, duration: float) -> float:
        if duration != int(duration):
            raise ValueError(f"duration {duration:g} s: whole seconds are needed")
        return duration


class IperfScenario(Scenario[IperfParameters]):
    """Measure throughput with iperf3."""

    name = "iperf"
    title = "Throughput (iperf3)"
    parameters = IperfParameters
    services = (SERVICE,)

    def time_limit_s(self, parameters: IperfParameters) -> float:
        """Return the time for all tests, including their starts and ends, but at most 120 s."""
        each = parameters.duration + _CONNECT_TIMEOUT_S + _BUSY_S + _AFTER_S + parameters.pause
        return min(math.ceil(len(parameters.directions) * each), MAX_TEST_S)

    def estimate_s(self, parameters: IperfParameters) -> float:
        """Return the time for all tests and the pauses between them, s."""
        return len(parameters.directions) * (parameters.duration + parameters.pause + 1)

    def open(self, context: Context, parameters: IperfParameters) -> AbstractContextManager["_Session"]:
        """Return a context manager that only yields the session: nothing needs to be prepared."""
        return nullcontext(_Session(context, parameters))


class _Session(Session[IperfParameters]):
    def run(self) -> None:
        """Run one iperf3 test for each direction. Raises StepError if iperf3 reports an error or gives no result."""
        context, parameters = self.context, self.parameters
        facts = context.service(SERVICE)
        for number, direction in enumerate(parameters.directions):
            if number:
                time.sleep(parameters.pause)
            result = _test(context, parameters, facts, direction)
            context.observe("iperf", direction=direction, parallel=parameters.parallel, **result)


def _test(
    context: Context, parameters: IperfParameters, facts: Mapping[str, str], direction: Direction
) -> dict[str, object]:
    argv = [
        *(context.phone.program(IPERF3), "--client", facts["host"], "--port", facts["port"], "--json"),
        *("--time", f"{parameters.duration:g}", "--parallel", str(parameters.parallel)),
        *("--connect-timeout", f"{_CONNECT_TIMEOUT_S * 1000:g}"),
        *(["--reverse"] if direction == "down" else []),
    ]
    timeout_s = parameters.duration + _CONNECT_TIMEOUT_S + _AFTER_S
    deadline = time.monotonic() + _BUSY_S
    while True:
        answer = context.phone.shell(argv, timeout_s=timeout_s, check=False)
        if _BUSY not in answer.stdout or time.monotonic() > deadline:
            break
        time.sleep(_POLL_S)
    (context.cell_dir / f"iperf-{direction}.json").write_text(answer.stdout)
    return read_result(answer.stdout, answer.stderr, direction)


def read_result(stdout: str, stderr: str, direction: str) -> dict[str, object]:
    """Return the fields of an observation ``iperf`` from the JSON that iperf3 printed.

    Returns:
        ``duration_s``, ``received_bytes`` and ``received_bps``, measured by the receiver; ``sent_bytes`` and
        ``retransmits`` of the sender (None: its system does not count retransmissions); and ``per_second_bps``, a list
        of bit rates that the phone's iperf3 measured.

    Raises:
        StepError: the output is not JSON, has an error, or lacks a value.
    """
    try:
        result: dict[str, Any] = json.loads(stdout)
    except ValueError:
        lines = stderr.strip().splitlines() or ["nothing was printed"]
        raise StepError(f"iperf: {direction}: no result: {lines[-1]}") from None
    if problem := result.get("error"):
        raise StepError(f"iperf: {direction}: {problem}")
    try:
        sent, received = result["end"]["sum_sent"], result["end"]["sum_received"]
        return {
            "duration_s": received["seconds"],
            "received_bytes": received["bytes"],
            "received_bps": received["bits_per_second"],
            "sent_bytes": sent["bytes"],
            "retransmits": sent.get("retransmits"),
            "per_second_bps": [round(interval["sum"]["bits_per_second"]) for interval in result["intervals"]],
        }
    except KeyError as error:
        raise StepError(f"iperf: {direction}: the result has no {error}") from None


SCENARIO = IperfScenario()
