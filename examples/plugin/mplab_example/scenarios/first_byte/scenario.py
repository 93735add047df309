"""Send small requests one after the other, each on a new connection."""

from contextlib import AbstractContextManager, nullcontext

from pydantic import Field

from mplab.base.errors import StepError
from mplab.base.programs import CURL
from mplab.format.units import DurationS
from mplab.scenarios.base import Context, Parameters, Scenario, Session

_URL = "http://dl.lab/1000"
"""A file of 1 kB at the lab's origin."""
_USUAL_S = 0.3
_TIMEOUT_S = 10.0


class FirstByteParameters(Parameters):
    """Parameters of the scenario `first-byte`."""

    requests: int = Field(5, ge=1, le=100, description="How many.")
    pause: DurationS = Field(0.1, le=10, description="Between two requests.")


class FirstByteScenario(Scenario[FirstByteParameters]):
    """Send small requests with curl, and measure the time to the first byte of each answer."""

    name = "first-byte"
    title = "Time to the first byte"
    parameters = FirstByteParameters

    def time_limit_s(self, parameters: FirstByteParameters) -> float:
        """Return the duration if every request takes as long as curl allows, s."""
        return parameters.requests * (_TIMEOUT_S + parameters.pause)

    def estimate_s(self, parameters: FirstByteParameters) -> float:
        """Return the usual duration of all requests and pauses, s."""
        return parameters.requests * (_USUAL_S + parameters.pause)

    def open(self, context: Context, parameters: FirstByteParameters) -> AbstractContextManager["_Session"]:
        """Return a context manager that only yields the session: nothing needs to be prepared."""
        return nullcontext(_Session(context, parameters))


class _Session(Session[FirstByteParameters]):
    def run(self) -> None:
        """Send the requests, and write the time to the first byte of each as an observation.

        Raises:
            StepError: a request gets no answer with status 200.
        """
        phone = self.context.phone
        curl = [phone.program(CURL), "-q", "--silent", "--output", "/dev/null", "--max-time", f"{_TIMEOUT_S:g}"]
        for number in range(self.parameters.requests):
            answer = phone.shell([*curl, "--write-out", "%{http_code} %{time_starttransfer}", _URL], check=False)
            status, _, time_s = answer.stdout.partition(" ")
            if status != "200":
                raise StepError(f"request {number + 1}: {answer.stderr.strip() or f'HTTP status {status}'}")
            self.context.observe("first_byte", request=number + 1, time_s=float(time_s))
            phone.shell(["sleep", f"{self.parameters.pause:g}"])


SCENARIO = FirstByteScenario()
