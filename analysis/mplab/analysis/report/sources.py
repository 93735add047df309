"""Define the full references of the sources that reports, figures and the manual cite by short names."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mplab.analysis.text import slug


@dataclass(frozen=True)
class Reference:
    """A paper, book or standard.

    Attributes:
        key: short name in citations, such as ``han2015`` or ``Lakens 2017``.
        authors, title, place: the reference; `place` has journal or conference, volume and pages, publisher, and year.
        doi: the DOI, or "".
        url: permanent address of a source without DOI.
    """

    key: str
    authors: str
    title: str
    place: str
    doi: str = ""
    url: str = ""

    @property
    def anchor(self) -> str:
        """Return the key as a part of an HTML identifier."""
        return slug(self.key)

    @property
    def link(self) -> str:
        """Return the address of the source; "" if it has none."""
        return f"https://doi.org/{self.doi}" if self.doi else self.url

    @property
    def link_text(self) -> str:
        """Return the text of the link: ``doi:…``, or the address without its scheme."""
        return f"doi:{self.doi}" if self.doi else self.url.removeprefix("https://")


PAPERS = (
    Reference(
        "baerts2015",
        "Matthieu Baerts, Quentin De Coninck",
        "Multipath TCP with real smartphone applications",
        "Master's thesis, Université catholique de Louvain, École polytechnique de Louvain, June 2015",
        url="https://dial.uclouvain.be/memoire/ucl/object/thesis:366",
    ),
    Reference(
        "nikravesh2016",
        "Ashkan Nikravesh, Yihua Guo, Feng Qian, Z. Morley Mao, Subhabrata Sen",
        "An in-depth understanding of multipath TCP on mobile devices: measurement and system design",
        "International Conference on Mobile Computing and Networking (MobiCom '16), New York City, ACM, October 2016",
        "10.1145/2973750.2973769",
    ),
    Reference(
        "han2015",
        "Bo Han, Feng Qian, Shuai Hao, Lusheng Ji",
        "An anatomy of mobile web performance over multipath TCP",
        "Conference on Emerging Networking Experiments and Technologies (CoNEXT '15), Heidelberg, ACM, December 2015",
        "10.1145/2716281.2836090",
    ),
    Reference(
        "deng2014",
        "Shuo Deng, Ravi Netravali, Anirudh Sivaraman, Hari Balakrishnan",
        "WiFi, LTE, or both? Measuring multi-homed wireless Internet performance",
        "Internet Measurement Conference (IMC '14), ACM, November 2014, pages 181–194",
        "10.1145/2663716.2663727",
    ),
    Reference(
        "adarsh2019",
        "Vivek Adarsh, Paul Schmitt, Elizabeth Belding",
        "MPTCP performance over heterogeneous subpaths",
        "International Conference on Computer Communications and Networks (ICCCN), IEEE, 2019",
    ),
)
"""Papers whose experiments mplab reproduces; docs/sources.md lists them."""

STATISTICS = (
    Reference(
        "Benjamini & Hochberg 1995",
        "Yoav Benjamini, Yosef Hochberg",
        "Controlling the false discovery rate: a practical and powerful approach to multiple testing",
        "Journal of the Royal Statistical Society B 57(1), 1995, pages 289–300",
        "10.1111/j.2517-6161.1995.tb02031.x",
    ),
    Reference(
        "Cliff 1993",
        "Norman Cliff",
        "Dominance statistics: ordinal analyses to answer ordinal questions",
        "Psychological Bulletin 114(3), 1993, pages 494–509",
        "10.1037/0033-2909.114.3.494",
    ),
    Reference(
        "Davison & Hinkley 1997",
        "Anthony C. Davison, David V. Hinkley",
        "Bootstrap methods and their application",
        "Cambridge University Press, 1997",
        "10.1017/CBO9780511802843",
    ),
    Reference(
        "Doksum 1974",
        "Kjell Doksum",
        "Empirical probability plots and statistical inference for nonlinear models in the two-sample case",
        "The Annals of Statistics 2(2), 1974, pages 267–277",
        "10.1214/aos/1176342662",
    ),
    Reference(
        "Efron & Tibshirani 1993",
        "Bradley Efron, Robert J. Tibshirani",
        "An introduction to the bootstrap",
        "Chapman & Hall, 1993",
        "10.1007/978-1-4899-4541-9",
    ),
    Reference(
        "Fleming & Wallace 1986",
        "Philip J. Fleming, John J. Wallace",
        "How not to lie with statistics: the correct way to summarize benchmark results",
        "Communications of the ACM 29(3), 1986, pages 218–221",
        "10.1145/5666.5673",
    ),
    Reference(
        "Hesterberg 2015",
        "Tim C. Hesterberg",
        "What teachers should know about the bootstrap: resampling in the undergraduate statistics curriculum",
        "The American Statistician 69(4), 2015, pages 371–386",
        "10.1080/00031305.2015.1089789",
    ),
    Reference(
        "Hodges & Lehmann 1963",
        "Joseph L. Hodges, Erich L. Lehmann",
        "Estimates of location based on rank tests",
        "The Annals of Mathematical Statistics 34(2), 1963, pages 598–611",
        "10.1214/aoms/1177704172",
    ),
    Reference(
        "Hollander & Wolfe 1999",
        "Myles Hollander, Douglas A. Wolfe",
        "Nonparametric statistical methods, second edition",
        "Wiley, 1999, ISBN 978-0-471-19045-5",
    ),
    Reference(
        "Hyndman & Fan 1996",
        "Rob J. Hyndman, Yanan Fan",
        "Sample quantiles in statistical packages",
        "The American Statistician 50(4), 1996, pages 361–365",
        "10.1080/00031305.1996.10473566",
    ),
    Reference(
        "Kish 1965",
        "Leslie Kish",
        "Survey sampling",
        "Wiley, New York, 1965",
    ),
    Reference(
        "Kolmogorov 1933",
        "Andrei N. Kolmogorov",
        "Sulla determinazione empirica di una legge di distribuzione",
        "Giornale dell'Istituto Italiano degli Attuari 4, 1933, pages 83–91",
    ),
    Reference(
        "Lakens 2017",
        "Daniël Lakens",
        "Equivalence tests: a practical primer for t tests, correlations, and meta-analyses",
        "Social Psychological and Personality Science 8(4), 2017, pages 355–362",
        "10.1177/1948550617697177",
    ),
    Reference(
        "Mann & Whitney 1947",
        "Henry B. Mann, Donald R. Whitney",
        "On a test of whether one of two random variables is stochastically larger than the other",
        "The Annals of Mathematical Statistics 18(1), 1947, pages 50–60",
        "10.1214/aoms/1177730491",
    ),
    Reference(
        "Noether 1987",
        "Gottfried E. Noether",
        "Sample size determination for some common nonparametric tests",
        "Journal of the American Statistical Association 82(398), 1987, pages 645–647",
        "10.1080/01621459.1987.10478478",
    ),
    Reference(
        "Romano et al. 2006",
        "Jeanine Romano, Jeffrey D. Kromrey, Jesse Coraggio, Jeff Skowronek",
        "Appropriate statistics for ordinal level data: should we really be using t-test and Cohen's d for evaluating "
        "group differences on the NSSE and other surveys?",
        "Annual meeting of the Florida Association of Institutional Research, 2006",
    ),
    Reference(
        "Schuirmann 1987",
        "Donald J. Schuirmann",
        "A comparison of the two one-sided tests procedure and the power approach for assessing the equivalence of "
        "average bioavailability",
        "Journal of Pharmacokinetics and Biopharmaceutics 15(6), 1987, pages 657–680",
        "10.1007/BF01068419",
    ),
    Reference(
        "Smirnov 1939",
        "Nikolai V. Smirnov",
        "On the estimation of the discrepancy between empirical curves of distribution for two independent samples",
        "Bulletin Mathématique de l'Université de Moscou 2(2), 1939",
    ),
    Reference(
        "Wallace 1959",
        "David L. Wallace",
        "Bounds on normal approximations to Student's and the chi-square distributions",
        "The Annals of Mathematical Statistics 30(4), 1959, pages 1121–1130",
        "10.1214/aoms/1177706096",
    ),
    Reference(
        "Westfall & Young 1993",
        "Peter H. Westfall, S. Stanley Young",
        "Resampling-based multiple testing: examples and methods for p-value adjustment",
        "Wiley, 1993, ISBN 978-0-471-55761-6",
    ),
    Reference(
        "Wilcoxon 1945",
        "Frank Wilcoxon",
        "Individual comparisons by ranking methods",
        "Biometrics Bulletin 1(6), 1945, pages 80–83",
        "10.2307/3001968",
    ),
)


def _rfc(number: int, authors: str, title: str, year: int) -> Reference:
    return Reference(f"RFC {number}", authors, title, f"IETF, {year}", f"10.17487/RFC{number}")


def _w3c(key: str, name: str) -> Reference:
    return Reference(
        f"W3C {key}", "World Wide Web Consortium", key, "Web standard", url=f"https://www.w3.org/TR/{name}/"
    )


STANDARDS = (
    _rfc(2647, "D. Newman", "Benchmarking terminology for firewall performance", 1999),
    _rfc(2681, "G. Almes, S. Kalidindi, M. Zekauskas", "A round-trip delay metric for IPPM", 1999),
    _rfc(3550, "H. Schulzrinne, S. Casner, R. Frederick, V. Jacobson", "RTP: a transport protocol", 2003),
    _rfc(4737, "A. Morton et al.", "Packet reordering metrics", 2006),
    _rfc(5560, "H. Uijterwaal", "A one-way packet duplication metric", 2009),
    _rfc(7679, "G. Almes, S. Kalidindi, M. Zekauskas, A. Morton", "A one-way delay metric for IPPM", 2016),
    _rfc(7680, "G. Almes, S. Kalidindi, M. Zekauskas, A. Morton", "A one-way loss metric for IPPM", 2016),
    _w3c("Largest Contentful Paint", "largest-contentful-paint"),
    _w3c("Media Playback Quality", "media-playback-quality"),
    _w3c("Navigation Timing 2", "navigation-timing-2"),
    _w3c("Paint Timing", "paint-timing"),
    _w3c("Resource Timing", "resource-timing"),
)

SOURCES = {source.key: source for source in (*PAPERS, *STATISTICS, *STANDARDS)}
_KEYS = re.compile("|".join(rf"\b{re.escape(key)}\b" for key in sorted(SOURCES, key=len, reverse=True)))


class Citations:
    """Finds the sources in the texts of one page, and remembers which of them the page cites."""

    def __init__(self) -> None:
        self._cited: set[str] = set()

    def cite(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield the parts of ``text`` with the anchor of the source that the part names, or "" for other parts."""
        place = 0
        for match in _KEYS.finditer(text):
            if match.start() > place:
                yield text[place : match.start()], ""
            self._cited.add(match[0])
            yield match[0], SOURCES[match[0]].anchor
            place = match.end()
        if place < len(text):
            yield text[place:], ""

    def sources(self) -> list[Reference]:
        """Return the sources that the page has cited before this call, in the order of `SOURCES`."""
        return [source for key, source in SOURCES.items() if key in self._cited]


def markdown(sources: Iterable[Reference]) -> str:
    """Return a Markdown table of sources: short name, and reference with its link."""
    rows = ["| short name | reference |", "| --- | --- |"]
    for source in sources:
        link = f" [{source.link_text}]({source.link})" if source.link else ""
        title = source.title if source.title.endswith("?") else f"{source.title}."
        rows.append(f"| {source.key} | {source.authors}. *{title}* {source.place}.{link} |")
    return "\n".join(rows) + "\n"
