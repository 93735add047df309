"""The top of the report looks as in the golden pictures: at two widths, light, dark, and without scripts."""

from collections.abc import Iterator

import pytest
from PIL import Image

from mplab.base.programs import CHROMIUM
from tests.pages import chromium_page
from tests.screenshots import MOST_DIFFERENT, NAMES, PICTURES, different, golden, golden_page, pictures

pytestmark = pytest.mark.long
_MOST_BYTES = 150_000


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Image.Image]]:
    if CHROMIUM.find() is None:
        pytest.skip("no Chromium")
    with chromium_page() as browser:
        yield dict(pictures(browser, golden_page(tmp_path_factory.mktemp("golden"))))


@pytest.mark.parametrize("name", NAMES)
def test_the_report_looks_as_before(taken: dict[str, Image.Image], name: str) -> None:
    share = different(taken[name], golden(name))
    if share > MOST_DIFFERENT:
        seen = PICTURES.parents[2] / "build" / "pictures" / f"{name}.png"
        seen.parent.mkdir(parents=True, exist_ok=True)
        taken[name].save(seen)
        pytest.fail(f"{share:.1%} of the pixels differ: compare {seen}; to accept it: python -m tests.screenshots")


def test_a_changed_page_is_noticed() -> None:
    light, dark = golden("1300-light"), golden("1300-dark")
    moved = Image.new("RGB", light.size, "white")
    moved.paste(light, (0, 3))
    assert different(light, dark) > MOST_DIFFERENT
    assert different(light, moved) > MOST_DIFFERENT
    assert different(light, light.crop((0, 0, 420, 900))) == 1.0


def test_the_pictures_are_small_and_none_is_left_over() -> None:
    assert {file.stem for file in PICTURES.iterdir()} == set(NAMES)
    assert max(file.stat().st_size for file in PICTURES.iterdir()) < _MOST_BYTES
