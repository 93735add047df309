"""Set routes of a phone whose system does not manage routes itself."""

_PRIMARY_METRIC = 50


def primary_command(interface: str, gateway: str) -> str:
    """Return the `ip` command that makes an interface the default route; it may be run repeatedly."""
    return f"route replace default via {gateway} dev {interface} metric {_PRIMARY_METRIC}"
