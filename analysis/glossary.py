"""The report's words, with the source of each definition."""

STATISTICS = (
    (
        "n",
        "Repetitions that count: one value per ok cell. When a cell has several values for one metric with the same "
        "labels, their median is its value. “4 of 5” says that one ok cell lacks the value.",
        "",
    ),
    (
        "Median, quartiles",
        "Middle value; the limits of the middle half, by linear interpolation.",
        "Hyndman & Fan 1996, type 7",
    ),
    (
        "95 % interval",
        "Percentile bootstrap of the median: 9999 resamples, seeded from the run's seed, so that it comes out the same "
        "each time. None for n < 3. For n < 6 even the whole range of the values covers the true median with less "
        "than 95 % (1 − 2 · 0.5ⁿ), so read it as a hint.",
        "Efron & Tibshirani 1993, ch. 13",
    ),
    (
        "Δ",
        "Median minus the median of the best single path (the reference): the one with the best median among the "
        "transports whose name begins with sptcp.",
        "",
    ),
    (
        "G",
        "What multipath gains: (best single path − multipath) / best single path, from medians; where more is better, "
        "(multipath − best) / best. G = 0.20: 20 % saved; below 0: multipath is worse. In each resample of its "
        "interval the best single path is chosen anew.",
        "han2015 §4",
    ),
    (
        "Cliff's delta",
        "P(x > y) − P(x < y) of a value x of this transport and a value y of the reference: −1 (all smaller) to 1 "
        "(all greater). Below 0.147 negligible, below 0.33 small, below 0.474 medium, else large.",
        "Cliff 1993; Romano et al. 2006",
    ),
    (
        "p",
        "Two-sided Mann–Whitney U test against the reference, for n ≥ 3 on both sides. Not corrected for the number "
        "of comparisons on this page.",
        "Mann & Whitney 1947",
    ),
    (
        "Byte share",
        "Unique payload bytes (retransmissions once) of an interface by those of all interfaces, both directions, per "
        "cell; the mean over cells.",
        "baerts2015 ch. 4",
    ),
    (
        "Invalid, failed",
        "Invalid: the measured link or the proven transport was not what was asked. Failed: a step went wrong. Both "
        "are kept and listed, and never averaged.",
        "",
    ),
)
"""(word, meaning, source)."""
