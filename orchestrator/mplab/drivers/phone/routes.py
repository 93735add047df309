"""Routes of a phone whose system leaves them alone."""

_PRIMARY_METRIC = 50


def primary_command(interface: str, gateway: str) -> str:
    """The `ip` command that makes a phone prefer an interface; it may be given again and again."""
    return f"route replace default via {gateway} dev {interface} metric {_PRIMARY_METRIC}"
