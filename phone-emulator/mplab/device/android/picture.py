"""Draw the display: a box for each element, with its text."""

import io
import re
import xml.etree.ElementTree as ET

from PIL import Image, ImageDraw

from mplab.device.android.state import State

_FILM_SCALE = 3
_BOUNDS = re.compile(r"\[(-?\d+),(-?\d+)\]\[(-?\d+),(-?\d+)\]")


def picture_of(state: State) -> bytes:
    """Return the display as PNG; it is black when off."""
    buffer = io.BytesIO()
    _image(state).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def film_size(state: State) -> tuple[int, int]:
    """Return width and height of a screen recording's frames, pixels; both are even, as H.264 requires."""
    width, height = _size(state)
    return width // _FILM_SCALE // 2 * 2, height // _FILM_SCALE // 2 * 2


def frame_of(state: State) -> bytes:
    """Return the display as one frame of a screen recording: RGB, three bytes per pixel."""
    return _image(state).resize(film_size(state), Image.Resampling.NEAREST).tobytes()


def _size(state: State) -> tuple[int, int]:
    return state.size_override or (state.model.screen.width, state.model.screen.height)


def _image(state: State) -> Image.Image:
    image = Image.new("RGB", _size(state), "#f4f4f4" if state.awake else "#000000")
    if state.awake:
        _draw(image, state.screen.current())
    return image


def _draw(image: Image.Image, hierarchy: str) -> None:
    canvas = ImageDraw.Draw(image)
    for node in ET.fromstring(hierarchy.encode()).iter("node"):  # noqa: S314
        if not (found := _BOUNDS.fullmatch(node.get("bounds", ""))):
            continue
        left, top, right, bottom = (int(part) for part in found.groups())
        if right > left and bottom > top:
            canvas.rectangle((left, top, right - 1, bottom - 1), outline="#808080")
            if text := node.get("text") or node.get("content-desc"):
                canvas.text((left + 8, top + 8), text.encode("latin-1", "replace").decode("latin-1"), fill="#000000")
