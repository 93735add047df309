"""Convert values between the units of metrics."""

_KINDS = (
    {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0},
    {"kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9},
    {"B": 1.0, "bytes": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30},
)


def in_unit(value: float, unit: str, wanted: str) -> float | None:
    """Return ``value`` in another unit; None when the units are of different kinds."""
    if unit == wanted:
        return value
    for kind in _KINDS:
        if unit in kind and wanted in kind:
            return value * kind[unit] / kind[wanted]
    return None


def units_like(unit: str) -> list[str]:
    """Return all units of the same kind, including ``unit`` itself."""
    return next((list(kind) for kind in _KINDS if unit in kind), [unit] if unit else [])
