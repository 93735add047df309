"""Templates and style sheet of all pages that the analysis writes."""

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


def page_environment() -> Environment:
    """Return the templates of ``report/templates``; values are escaped, and a missing one is an error."""
    return Environment(
        loader=PackageLoader("mplab.analysis.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )


def page_css() -> Markup:
    """Return the style sheet, for inclusion in a page."""
    css = (Path(__file__).parent / "templates" / "report.css").read_text(encoding="utf-8")
    return Markup(css)  # noqa: S704 - our own file
