"""Draw a picture of the screen, with a box and a text for each element."""

import io
from functools import cache

from PIL import Image, ImageDraw, ImageFont

from mplab.base.hierarchy import UiNode

_BACKGROUND, _INK, _LINE, _TOUCHABLE = "#fafafa", "#1a1a1a", "#c8c8c8", "#dbe7fb"
_TEXT_PIXELS = 36


def draw(windows: tuple[UiNode, ...]) -> Image.Image:
    """Return a picture of windows: each element is a rectangle with its text or, in brackets, its description.

    Clickable elements are coloured.
    """
    bounds = windows[0].bounds if windows else None
    width, height = (max(1, bounds.right), max(1, bounds.bottom)) if bounds else (1080, 2340)
    image = Image.new("RGB", (width, height), _BACKGROUND)
    canvas = ImageDraw.Draw(image)
    for window in windows:
        for node in window.walk():
            box = node.bounds
            corners = (box.left, box.top, max(box.left, box.right - 1), max(box.top, box.bottom - 1))
            canvas.rectangle(corners, fill=_TOUCHABLE if "clickable" in node.flags else None, outline=_LINE)
            label = node.text or (f"[{node.description}]" if node.description else "")
            if label:
                canvas.text((box.left + 16, box.top + 16), label, fill=_INK, font=_font())
    return image


@cache
def _font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(_TEXT_PIXELS)


def encoded(windows: tuple[UiNode, ...], kind: str = "PNG", *, scale: float = 1.0, quality: int = 80) -> bytes:
    """Return a picture of the windows as the bytes of a PNG or JPEG file.

    Args:
        windows: windows on the screen.
        kind: ``PNG`` or ``JPEG``.
        scale: factor for width and height, in (0, 1].
        quality: quality of a JPEG file, in percent.
    """
    image = draw(windows)
    if 0 < scale < 1:
        image = image.resize((max(1, round(image.width * scale)), max(1, round(image.height * scale))))
    target = io.BytesIO()
    image.save(target, kind, **({"quality": quality} if kind == "JPEG" else {"compress_level": 1}))
    return target.getvalue()
