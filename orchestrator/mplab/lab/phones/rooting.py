"""List the changes of a link condition that phones without root refuse; make their finding for `mplab doctor`."""

from collections.abc import Iterator

from mplab.base.findings import Finding
from mplab.format.link import LinkCondition

BY_SOCKS = "'root: none' in the lab file, for apps that have a setting for a SOCKS proxy"
"""The remedy for a phone without root."""


def unrooted_refusals(link: LinkCondition, phone: str) -> Iterator[str]:
    """Yield a sentence for each change in `link` that needs root; `phone` names a phone that is used without root."""
    for moment in link.changes:
        changes = {
            "interface": moment.interface,
            "access_point": moment.access_point,
            "route": moment.default_route,
            "multipath": moment.multipath,
        }
        for kind in (name for name, requested in changes.items() if requested):
            yield (
                f"{moment.path} at {moment.at_s:g} s: {kind}: needs root, and {phone} is used without root: "
                "allowed: values of the path, radio"
            )


def unrooted_finding(name: str) -> Finding:
    """Return the finding on a phone whose lab file says ``root: none``: root is not used."""
    text = "not used: runs use only apps that have a proxy setting, and no Multipath TCP"
    return Finding(f"phone {name}: root", "warning", text, "see 'root' in the lab file")
