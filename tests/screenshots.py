"""Take pictures of the report of a golden run, and compare them with those under ``tests/golden/pictures``.

``python -m tests.screenshots`` draws the golden pictures again. The fonts are those that Matplotlib ships, so that the
pictures do not depend on the fonts of a machine.
"""

import base64
import io
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib
import numpy as np
from PIL import Image

from mplab.analysis.pipeline import analyze
from mplab.base.places import ROOT
from tests.pages import WIDTHS, ChromiumPage, chromium_page
from tests.unit.analysis.synthetic import Synthetic, toy_scenario

PICTURES = ROOT / "tests" / "golden" / "pictures"
LOOKS: Mapping[str, Mapping[str, bool]] = {
    "light": {},
    "dark": {"dark": True},
    "no-script": {"scripts": False},
}
"""Name of a look → options of `ChromiumPage.show`."""
NAMES = tuple(f"{width}-{look}" for width in WIDTHS for look in LOOKS)
SAME = 48
"""Largest difference of a pixel in a colour, of 255, that is ignored: other versions of Chromium smooth edges."""
MOST_DIFFERENT = 0.005
"""Largest share of pixels that may differ."""

_FACES = {"DejaVuSans.ttf": "400", "DejaVuSans-Bold.ttf": "600 900"}


def golden_page(folder: Path) -> str:
    """Make the golden run in a folder, and return the URL of its report."""
    run = Synthetic(folder, repetitions=6, labels=["10 kB", "1 MB"], retried=(5,)).build()
    with toy_scenario(folder / "toy"):
        analyze(run)
    page = run / "report" / "index.html"
    page.write_text(page.read_text().replace("</head>", f"<style>{_style()}</style></head>"))
    return page.as_uri()


def pictures(browser: ChromiumPage, url: str) -> Iterator[tuple[str, Image.Image]]:
    """Yield the name and the picture of the top of the page, for each width and look."""
    for width in WIDTHS:
        for look, options in LOOKS.items():
            browser.show(url, width=width, **options)
            browser.run("await document.fonts.ready;")
            answer = browser.session.command("Page.captureScreenshot", format="png", timeout_s=60.0)
            yield f"{width}-{look}", Image.open(io.BytesIO(base64.b64decode(answer["data"]))).convert("RGB")


def different(picture: Image.Image, golden: Image.Image) -> float:
    """Return the share of pixels that differ; 1 if the sizes differ."""
    if picture.size != golden.size:
        return 1.0
    apart = np.abs(np.asarray(picture, dtype=np.int16) - np.asarray(golden, dtype=np.int16)).max(axis=2)
    return float((apart > SAME).mean())


def golden(name: str) -> Image.Image:
    """Return the golden picture with this name."""
    return Image.open(PICTURES / f"{name}.png").convert("RGB")


def main() -> None:
    """Write all golden pictures."""
    PICTURES.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, chromium_page() as browser:
        for name, picture in pictures(browser, golden_page(Path(folder))):
            picture.save(PICTURES / f"{name}.png", optimize=True)
            print(PICTURES / f"{name}.png", file=sys.stderr)


def _style() -> str:
    fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    faces = "".join(
        f"@font-face {{ font-family: golden; font-weight: {weight}; src: url({(fonts / file).as_uri()}); }}"
        for file, weight in _FACES.items()
    )
    still = "* { font-family: golden !important; animation: none !important; transition: none !important; }"
    return f"{faces} {still} ::-webkit-scrollbar {{ display: none; }}"


if __name__ == "__main__":
    main()
