"""Content of exact sizes."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mplab.drivers.origin import content


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


@given(st.integers(content.MIN_PNG_BYTES, 300_000))
def test_png_has_the_size_asked(size: int) -> None:
    assert len(content.png(size, rng())) == size


@given(
    parts=st.lists(st.text("aé<", max_size=20), min_size=2, max_size=8),
    extra=st.integers(0, 5000),
    comment=st.sampled_from([content.HTML_COMMENT, content.CODE_COMMENT]),
)
def test_padded_text_has_the_size_asked_and_keeps_its_parts(
    parts: list[str], extra: int, comment: tuple[str, str]
) -> None:
    size = sum(len(part.encode()) for part in parts) + extra
    text = content.padded_text(parts, size, comment, rng())
    assert len(text) == size
    position = 0
    for part in parts:
        position = text.index(part.encode(), position) + len(part.encode())


def test_padding_does_not_compress_well() -> None:
    text = content.padded_text(["a", "b"], 100_000, content.CODE_COMMENT, rng())
    assert len(zlib.compress(text)) > 70_000
    assert len(zlib.compress(content.png(100_000, rng()))) > 95_000


def test_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="PNG of 50 bytes"):
        content.png(50, rng())
    with pytest.raises(ValueError, match="text of 3 bytes: 1 bytes too small"):
        content.padded_text(["ab", "cd"], 3, content.CODE_COMMENT, rng())
