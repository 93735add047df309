"""Load the templates and the style sheet of the analysis' HTML pages, and define the glossary."""

import base64
import hashlib
from pathlib import Path

from jinja2 import BytecodeCache, Environment, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from mplab.analysis.statistics.contrast import CONTRAST_FIELDS


class _Compiled(BytecodeCache):
    """Compiled templates of this process: the reports of a campaign compile each template once."""

    def __init__(self) -> None:
        self._code: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if code := self._code.get(bucket.key):
            bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._code[bucket.key] = bucket.bytecode_to_string()


_COMPILED = _Compiled()


def page_environment() -> Environment:
    """Return the Jinja environment of ``report/templates``; it escapes values, and a missing value is an error."""
    return Environment(
        loader=PackageLoader("mplab.analysis.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        bytecode_cache=_COMPILED,
    )


STYLE_SHEET = "report.css"
"""Name of the style sheet in the folder ``report``, which the pages of cells and scenarios share."""


def page_css() -> Markup:
    """Return the text of the style sheet, for inclusion in a page."""
    return _text("report.css")


def cell_css() -> Markup:
    """Return the additions to the style sheet for the pages of cells."""
    return _text("cell.css")


def _text(name: str) -> Markup:
    text = (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 - our own file


def page_script() -> Markup:
    """Return the text of the script, for inclusion in a page: the page works without it."""
    script = (Path(__file__).parent / "templates" / "page.js").read_text(encoding="utf-8")
    return Markup(script)  # noqa: S704 - our own file


def script_hash() -> str:
    """Return the source expression that allows `page_script` in a Content Security Policy: ``sha256-…``."""
    element = f"\n{page_script()}\n"  # as the templates write it
    return "sha256-" + base64.b64encode(hashlib.sha256(element.encode()).digest()).decode()


def chart_css() -> Markup:
    """Return the style sheet of the charts of the pages that compare runs, for inclusion after `page_css`."""
    css = (Path(__file__).parent / "templates" / "chart.css").read_text(encoding="utf-8")
    return Markup(css)  # noqa: S704 - our own file


GLOSSARY = (
    (
        "n",
        "Repetitions that count: one value per ok cell. When a cell has several values for one metric with the same "
        "labels, their median is its value. “4 of 5”: one ok cell has no value.",
        "",
    ),
    (
        "Median, quartiles",
        "Middle value; the limits of the middle half, by linear interpolation.",
        "Hyndman & Fan 1996, type 7",
    ),
    (
        "95 % interval",
        "Percentile bootstrap of the median: 9999 resamples, seeded from the run's seed, so that it is the same each "
        "time. None for n < 3. For n < 6, even the range of all values covers the true median with less than 95 % "
        "(1 − 2 · 0.5ⁿ): read the interval as a hint.",
        "Efron & Tibshirani 1993, ch. 13",
    ),
    (
        "Reference",
        "The best single path: the one with the best median among the transports that use one path. It is "
        "selected by the same values that it is compared with, which favours it a little.",
        "",
    ),
    (
        "Δ by block",
        "Distance of a transport from the reference: the median of the averages of all pairs of the blocks' "
        "differences. In a block, both met the same losses at nearly the same time. The interval contains the shifts "
        "that the signed-rank test does not reject. With 3 to 5 blocks, it is a BCa bootstrap interval, which covers "
        "the true shift in about 88 of 100 cases instead of 95: a hint.",
        "Hodges & Lehmann 1963; Hollander & Wolfe 1999 §3; Efron & Tibshirani 1993 §14.3",
    ),
    (
        "Gain (G)",
        "Gain of multipath: (best single path − multipath) / best single path, from medians; if higher is better, "
        "(multipath − best) / best. 20 %: a fifth is saved; below 0: multipath is worse. Each resample of the interval "
        "selects the best single path again.",
        "han2015 §4",
    ),
    (
        "Better, equivalent",
        "Better: the signed-rank test over the blocks, corrected for all comparisons, has p ≤ 5 %, and the difference "
        "is at least the smallest effect of interest that the experiment file sets. Equivalent: the 90 % interval of "
        "the difference lies within the smallest effect (two one-sided tests). Undecided: neither is shown. Too few "
        "repetitions: no result of so few blocks could have p ≤ 5 %.",
        "Schuirmann 1987; Lakens 2017",
    ),
    (
        "Cliff's delta",
        "P(x > y) − P(x < y) of a value x of this transport and a value y of the reference: −1 (all smaller) to 1 "
        "(all greater). Below 0.147 negligible, below 0.33 small, below 0.474 medium, else large.",
        "Cliff 1993; Romano et al. 2006",
    ),
    (
        "p",
        "Of the two-sided Wilcoxon signed-rank test over the blocks, exact where n is small, corrected "
        "for all contrasts of this page by joint permutation of whole blocks: of the headline metrics together, of the "
        "others together. With n blocks, p is at least 2 · 0.5ⁿ: 0.0625 for n = 5. A large p does not show that two "
        "transports are alike. “p alone” is not corrected; “p BH” is corrected by Benjamini and Hochberg's method: "
        "about 5 % of the contrasts below 5 % are false.",
        "Wilcoxon 1945; Westfall & Young 1993; Benjamini & Hochberg 1995",
    ),
    (
        "All repetitions inside cells",
        "A cell can have several values (10 × 5: ten cells of five). They are not independent, so tests and the other "
        "tables use one number per cell, the median of its values. Mean and median of all values have 95 % intervals "
        "of the cluster bootstrap, which resamples whole cells. “Worth independent” is the number of independent "
        "values whose mean would have the same standard error.",
        "Davison & Hinkley 1997 §3.8; Hesterberg 2015; Kish 1965",
    ),
    *((word.word, word.meaning, word.source) for field in CONTRAST_FIELDS if (word := field.word) is not None),
    (
        "Byte share",
        "Unique payload bytes (retransmissions once) of an interface by those of all interfaces, both directions, per "
        "cell; the mean over cells.",
        "baerts2015 ch. 4",
    ),
    (
        "Invalid, failed",
        "Invalid: the measured link or the proven transport was not the requested one. Failed: a step failed. Both are "
        "kept and listed, and never averaged.",
        "",
    ),
)
"""Glossary of the report: (word, meaning, source) of each definition."""
