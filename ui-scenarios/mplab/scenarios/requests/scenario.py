"""Poll a server as apps do: rounds of periodic small HTTP requests, with idle times between the rounds."""

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Literal

from pydantic import Field, model_validator

from mplab.base.errors import StepError
from mplab.base.programs import CURL
from mplab.format.units import DurationS, SizeBytes, between, format_size
from mplab.scenarios.base import Context, Parameters, Scenario, Session

from . import curl

MAX_REQUESTS = 1000
"""Maximum number of requests that the server answers on one connection."""
_UNANSWERED = {5, 6, 7, 18, 28, 35, 52, 55, 56, 97}
"""Exit codes of curl that mean that network or proxy failed, and the request was not answered."""
_AFTER_S = 10.0

_REQUEST = between("request", 250, 4000, "{least} to {most} are needed", write=format_size)
_RESPONSE = between("response", 1, 40_000, "{least} to {most} are needed", write=format_size)
_PERIOD = between("period", 0.05, 60, "from 50 ms to 60 s is needed", write=lambda s: f"{s * 1000:g} ms")
_IDLE = between("idle", 0.05, 60, "at most 60 s: the server closes connections after 75 s", write=lambda s: f"{s:g} s")


class RequestsParameters(Parameters):
    """Parameters of the scenario `requests`."""

    requests: int = Field(
        20, ge=1, le=MAX_REQUESTS, description="Number of requests of a round; at most 1000 in all rounds together."
    )
    period: Annotated[DurationS, _PERIOD] = Field(
        0.5,
        description="Time from the start of a request to that of the next, 50 ms to 60 s. A request waits for the "
        "answer to the previous one.",
    )
    rounds: int = Field(2, ge=1, le=100, description="Number of rounds, with an idle time between two.")
    idle: Annotated[DurationS, _IDLE] = Field(
        10.0,
        description="Time from a round's last request to the next round, rounded up to whole periods; at most 60 s.",
    )
    connections: Literal["kept", "new"] = Field(
        "kept", description="Use one connection for all requests (kept), or a new one for each."
    )
    request: Annotated[SizeBytes, _REQUEST] = Field(
        500, description="Size of a request with its complete header, 250 B to 4 kB; a cookie pads it."
    )
    response: Annotated[SizeBytes, _RESPONSE] = Field(2000, description="Size of an answer's body, 1 B to 40 kB.")
    deadline: DurationS = Field(0.3, gt=0, description="An answer that takes longer is late.")
    patience: DurationS = Field(
        2.0, gt=0, le=60, description="Time after which the app gives up a request, and continues with the next one."
    )

    @model_validator(mode="after")
    def _consistent(self) -> "RequestsParameters":
        if self.rounds * self.requests > MAX_REQUESTS:
            raise ValueError(f"{self.rounds} rounds of {self.requests} requests: at most {MAX_REQUESTS} are possible")
        if self.deadline > self.patience:
            raise ValueError(f"deadline {self.deadline:g} s: more than the patience of {self.patience:g} s")
        if self.rounds > 1 and self.idle < self.period:
            raise ValueError(f"idle {self.idle:g} s: less than the period of {self.period:g} s")
        return self

    @property
    def idle_slots(self) -> int:
        """Return the number of periods without a request between two rounds."""
        return max(math.ceil(round(self.idle / self.period, 6)) - 1, 0)

    def plan(self) -> curl.RequestSchedule:
        """Return schedule and sizes of the requests for curl."""
        return curl.RequestSchedule(
            rounds=self.rounds,
            requests=self.requests,
            period_s=self.period,
            idle_slots=self.idle_slots,
            request_bytes=self.request,
            response_bytes=self.response,
            kept=self.connections == "kept",
            patience_s=self.patience,
        )

    def duration_s(self, each_s: float) -> float:
        """Return the duration of all rounds with the idle times between them, s, if each request takes `each_s`."""
        idle_s = (self.rounds - 1) * (self.idle_slots + 1) * self.period
        return self.rounds * self.requests * max(self.period, each_s) + idle_s


class RequestsScenario(Scenario[RequestsParameters]):
    """Send rounds of small HTTP requests with curl."""

    name = "requests"
    title = "Small requests at a steady pace"
    parameters = RequestsParameters
    socks = True

    def time_limit_s(self, parameters: RequestsParameters) -> float:
        """Return the duration if no request is answered, plus 10 s."""
        return math.ceil(parameters.duration_s(parameters.patience) + _AFTER_S)

    def estimate_s(self, parameters: RequestsParameters) -> float:
        """Return the duration if every request is answered within a period, plus 1 s."""
        return parameters.duration_s(0) + 1

    def open(self, context: Context, parameters: RequestsParameters) -> AbstractContextManager["_Session"]:
        """Return a context manager that only yields the session: nothing needs to be prepared."""
        return nullcontext(_Session(context, parameters))


class _Session(Session[RequestsParameters]):
    def run(self) -> None:
        """Send all requests. Raises StepError if an answer is wrong, or if no request is answered."""
        context, parameters = self.context, self.parameters
        argv = curl.argv(parameters.plan(), curl=context.phone.program(CURL), proxy=context.app_proxy)
        answer = context.phone.shell(argv, timeout_s=context.time_limit_s, check=False)
        requests, complaint = curl.parse(answer.stderr)
        wanted = parameters.rounds * parameters.requests
        if len(requests) != wanted:
            raise StepError(
                f"requests: {len(requests)} of {wanted} have a result: {complaint or answer.stderr.strip()[-200:]}"
            )
        for request in requests:
            _check(request, parameters, complaint)
        if all(request.exit_code for request in requests):
            raise StepError(f"requests: no request was answered: {complaint}")
        context.observe(
            "requests",
            connections=parameters.connections,
            period_s=parameters.period,
            idle_s=(parameters.idle_slots + 1) * parameters.period,
            deadline_s=parameters.deadline,
            patience_s=parameters.patience,
            results=[request.model_dump() for request in requests],
        )


def _check(request: curl.Request, parameters: RequestsParameters, complaint: str) -> None:
    name = f"requests: round {request.round}, request {request.number}"
    if request.exit_code in _UNANSWERED:
        return
    if request.exit_code:
        raise StepError(f"{name}: curl failed ({request.exit_code}): {complaint}")
    if request.status != 206:
        raise StepError(f"{name}: HTTP status {request.status}, 206 is needed")
    if request.response_bytes != parameters.response:
        raise StepError(f"{name}: {request.response_bytes} bytes came, {parameters.response} were requested")
    if parameters.connections == "new" and not request.connections:
        raise StepError(f"{name}: it used the connection of another request")


SCENARIO = RequestsScenario()
