"""How many repetitions an effect as large as the one that was seen would need.

The normal approximations of Noether 1987: they need nothing but a probability, and no distribution. What was seen
may be far from the truth when n is small, and so are these numbers then: they plan the next run, they judge none.
"""

import math

import numpy as np
from scipy import stats

from mplab.analysis.statistics.effects import Sample

LEVEL = 0.05
POWER = 0.8
METHOD = "normal approximation (Noether 1987)"
FEWEST_PAIRS = 6
"""With fewer pairs the signed-rank test cannot come below 5 %: 2 · 0.5⁵ = 0.0625."""

FEWEST_EACH = 4
"""With fewer values on each side the Mann-Whitney test cannot: 2 / (6 over 3) = 0.1."""


def needed_pairs(differences: Sample, level: float = LEVEL, power: float = POWER) -> int | None:
    """Pairs for the two-sided signed-rank test; None without an effect, and for fewer than two pairs."""
    if len(differences) < 2:
        return None
    first, second = np.triu_indices(len(differences), k=1)
    above = probability(np.sign(differences[first] + differences[second]))
    return _needed(3.0, above, FEWEST_PAIRS, level, power)


def needed_each(sample: Sample, reference: Sample, level: float = LEVEL, power: float = POWER) -> int | None:
    """Values on each side for the two-sided Mann-Whitney test; None without an effect."""
    above = probability(np.sign(np.subtract.outer(sample, reference)).ravel())
    return _needed(6.0, above, FEWEST_EACH, level, power)


def needed_for(above: float, level: float = LEVEL, power: float = POWER) -> int | None:
    """As `needed_each`, from P(x > y) + P(x = y) / 2."""
    return _needed(6.0, above, FEWEST_EACH, level, power)


def probability(signs: Sample) -> float:
    """The share of 1, and half of the share of 0."""
    return float((signs > 0).mean() + (signs == 0).mean() / 2)


def _needed(factor: float, above: float, fewest: int, level: float, power: float) -> int | None:
    effect = above - 0.5
    if effect == 0:
        return None
    quantiles = float(stats.norm.ppf(1 - level / 2) + stats.norm.ppf(power))
    return max(fewest, math.ceil(quantiles**2 / (factor * effect**2)))
