"""Correct the p-values of a family of tests for their number."""

from collections.abc import Sequence

import numpy as np
from scipy import stats


def holm(values: Sequence[float]) -> list[float]:
    """Return adjusted p-values that control the family-wise error rate (Holm 1979)."""
    found = np.asarray(values, dtype=float)
    order = np.argsort(found, kind="stable")
    steps = np.maximum.accumulate(found[order] * np.arange(len(found), 0, -1))
    adjusted = np.empty_like(found)
    adjusted[order] = np.minimum(steps, 1.0)
    return [float(p) for p in adjusted]


def benjamini_hochberg(values: Sequence[float]) -> list[float]:
    """Return adjusted p-values that control the false discovery rate (Benjamini & Hochberg 1995)."""
    return [float(p) for p in stats.false_discovery_control(values, method="bh")] if len(values) else []
