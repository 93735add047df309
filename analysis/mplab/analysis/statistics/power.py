"""Estimate the number of repetitions needed to detect an effect of the observed size.

The normal approximations of Noether 1987 need only a probability, and no distribution. With few values, the observed
effect can be far from the true one, and so can these numbers: use them to plan the next run, not to judge this one.
"""

import math

import numpy as np
import scipy

from mplab.analysis.statistics.effects import Sample

LEVEL = 0.05
POWER = 0.8
METHOD = "normal approximation (Noether 1987)"
FEWEST_PAIRS = 6
"""Minimum number of pairs with which p of the signed-rank test can be below 5 %; with 5: 2 · 0.5⁵ = 0.0625.

The joint test of a family (`mplab.analysis.statistics.paired.step_down`) needs no more.
"""

FEWEST_EACH = 4
"""Minimum number of values in each sample with which p of the Mann-Whitney test can be below 5 %; with 3:
2 / (6 over 3) = 0.1.
"""


def needed_pairs(differences: Sample, level: float = LEVEL, power: float = POWER) -> int | None:
    """Return the number of pairs with which the two-sided signed-rank test detects the observed effect.

    ``power`` is the probability of the detection at the significance level ``level``. Return None without an effect, or
    for fewer than two pairs.
    """
    if len(differences) < 2:
        return None
    first, second = np.triu_indices(len(differences), k=1)
    above = probability(np.sign(differences[first] + differences[second]))
    return _needed(3.0, above, FEWEST_PAIRS, level, power)


def needed_each(sample: Sample, reference: Sample, level: float = LEVEL, power: float = POWER) -> int | None:
    """Return the number of values per sample with which the two-sided Mann-Whitney test detects the observed effect.

    Return None without an effect.
    """
    above = probability(np.sign(np.subtract.outer(sample, reference)).ravel())
    return _needed(6.0, above, FEWEST_EACH, level, power)


def needed_for(above: float, level: float = LEVEL, power: float = POWER) -> int | None:
    """Return the result of `needed_each` for samples with the given ``above`` = P(x > y) + P(x = y) / 2."""
    return _needed(6.0, above, FEWEST_EACH, level, power)


def probability(signs: Sample) -> float:
    """Return the share of positive signs plus half of the share of zeros: an estimate of P(x > y) + P(x = y) / 2."""
    return float((signs > 0).mean() + (signs == 0).mean() / 2)


def _needed(factor: float, above: float, fewest: int, level: float, power: float) -> int | None:
    effect = above - 0.5
    if effect == 0:
        return None
    quantiles = float(scipy.stats.norm.ppf(1 - level / 2) + scipy.stats.norm.ppf(power))
    return max(fewest, math.ceil(quantiles**2 / (factor * effect**2)))
