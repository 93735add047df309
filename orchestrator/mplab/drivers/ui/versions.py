"""Compare the version of an installed app with the versions for which a scenario's selectors were made."""

import re

_NUMBERS = re.compile(r"\d+")


def outside(version: str, tested: str) -> str:
    """Return why `version` is outside of the tested range of an ``app.yaml``; "" if it is inside.

    Args:
        version: version of the installed app: ``391.2.4``.
        tested: first and last tested version: ``380 … 400``. Only the written numbers of a version are compared, so
            400.1 is inside this range.
    """
    installed = _parts(version)
    ends = [_parts(end) for end in tested.split("…")]
    if not installed or not all(ends):
        return f"version {version} cannot be compared with {tested}"
    first, last = ends[0], ends[-1]
    if installed[: len(first)] < first:
        return f"version {version} is older than those that its selectors were made for ({tested})"
    if installed[: len(last)] > last:
        return f"version {version} is newer than those that its selectors were made for ({tested})"
    return ""


def _parts(version: str) -> list[int]:
    return [int(number) for number in _NUMBERS.findall(version)]
