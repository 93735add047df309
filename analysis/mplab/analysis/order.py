"""Sort labels by their meaning: quantities by size, numbers in words by value."""

import re

Labels = tuple[tuple[str, str], ...]
LabelsKey = tuple[tuple[str, float, tuple[tuple[bool, int, str], ...]], ...]

_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kMGT]i?)?[A-Za-z/%]*")
_PREFIX = {
    "": 1.0,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}


def label_sort_key(labels: Labels) -> LabelsKey:
    """Return a sort key: quantities by size (10 kB before 1 MB), then words, with numbers by value (a2 before a10)."""
    return tuple((name, _quantity(value), _natural(value)) for name, value in labels)


def _quantity(text: str) -> float:
    match = _QUANTITY.fullmatch(text.strip())
    return float(match[1]) * _PREFIX[match[2] or ""] if match else float("inf")


def _natural(text: str) -> tuple[tuple[bool, int, str], ...]:
    parts = re.findall(r"[0-9]+|[^0-9]+", text)
    return tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)
