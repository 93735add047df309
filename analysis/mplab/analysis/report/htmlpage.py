"""What every page that analysis writes is made with: the templates, and the one style sheet."""

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
    """The styles, to stand inside a page."""
    css = (Path(__file__).parent / "templates" / "report.css").read_text(encoding="utf-8")
    return Markup(css)  # noqa: S704 - our own file
