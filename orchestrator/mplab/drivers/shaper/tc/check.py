"""Check a machine's traffic control for `mplab doctor`."""

from collections.abc import Iterator

from mplab.base.findings import Finding
from mplab.drivers.shaper.tc.capabilities import Capabilities

_OPTIONAL = {
    "codel": "queues with CoDel",
    "fq_codel": "queues with FQ-CoDel",
    "cake": "queues with CAKE",
    "normal": "jitter with a normal distribution",
    "pareto": "jitter with a Pareto distribution",
    "paretonormal": "jitter with a Pareto-normal distribution",
}


def check_shaping(found: Capabilities, what: str) -> Iterator[Finding]:
    """Yield findings about the shaping abilities of a machine; `what` is its name in messages."""
    problems = list(found.problems())
    for problem in problems:
        yield Finding(f"{what}: shaping", "missing", problem, "see the message")
    for warning in found.warnings():
        yield Finding(f"{what}: shaping", "warning", warning, "its rate and delay come on top of the requested ones")
    if not problems:
        tiny = " (tc-tiny)" if found.tiny else ""
        yield Finding(f"{what}: shaping", "ok", f"htb, netem, ifb; {found.tc_version}{tiny}")
    for name, purpose in _OPTIONAL.items():
        if found.tc and name not in found.can and "netem" in found.can:
            yield Finding(f"{what}: {name}", "warning", f"no {purpose}", found.remedy(name))
