"""Make the gallery of ``mplab figures``: a page with all figures of a folder, their files, data and sources."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from mplab.analysis.figures.catalog import LeftOut, WrittenFigure
from mplab.analysis.figures.style import inline
from mplab.analysis.report.htmlpage import page_css, page_environment, page_script

NAME = "index.html"


def gallery(
    title: str, figures: Sequence[WrittenFigure], left_out: Sequence[LeftOut], command: str, width_in: float
) -> str:
    """Return the page as HTML.

    Args:
        title: name of the run, or of the folder of tables.
        figures: the figures, in the order of the page; their files are in the folder of the page.
        left_out: the figures that were not drawn.
        command: the command that draws the figures again.
        width_in: width of each figure, inches.
    """
    environment = page_environment()
    environment.globals["svg"] = lambda drawing: Markup(inline(drawing))  # noqa: S704 - our own figure
    environment.filters["address"] = lambda path: quote(Path(path).name)
    return environment.get_template("gallery.html.j2").render(
        css=page_css(),
        script=page_script(),
        title=title,
        figures=figures,
        left_out=left_out,
        command=command,
        width_in=width_in,
    )
