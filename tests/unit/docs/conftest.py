"""A folder in which the commands and the files of the manual work."""

from pathlib import Path

import pytest

from mplab.base.places import ROOT
from tests.manual import BLOCKS

TUTORIAL = [block.text for block in BLOCKS if block.page == "docs/tutorial.md" and block.language == "yaml"]
FIRST_WORDS = {"mine": "mplab: 1\nname: short-files", "long-files": "# long-files.yaml", "night": "# night.yaml"}
CAPTURES = ("two-paths-wlan0.pcapng", "two-paths-rmnet0.pcapng")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a folder like the checkout, with the files that a reader of the manual has written."""
    for name in ("experiments", "router-configs", "build"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name, words in FIRST_WORDS.items():
        text = next(text for text in TUTORIAL if text.startswith(words))
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    bench = (ROOT / "router-configs" / "labs" / "bench.yaml").read_text(encoding="utf-8")
    (tmp_path / "bench.yaml").write_text(_two_phones(bench), encoding="utf-8")
    demo = (ROOT / "experiments" / "demo.yaml").read_text(encoding="utf-8")
    (tmp_path / "nightly.yaml").write_text(demo, encoding="utf-8")
    for capture, name in zip(CAPTURES, ("wlan0.pcapng", "rmnet0.pcapng"), strict=True):
        (tmp_path / name).write_bytes((ROOT / "analysis" / "mptrace" / "testdata" / capture).read_bytes())
    for copy in ("trace.pcapng", "proxy.pcapng"):
        (tmp_path / copy).write_bytes((tmp_path / "wlan0.pcapng").read_bytes())
    secrets = tmp_path / "home" / ".config" / "mplab"
    secrets.mkdir(parents=True)
    for name in ("webhook-url", "mail-password"):
        (secrets / name).write_text("https://chat.example.org/hooks/KEY\n", encoding="utf-8")
        (secrets / name).chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _two_phones(bench: str) -> str:
    """Return a lab file with two phones, `pixel-1` and `pixel-2`, in place of `pixel`."""
    head, _, rest = bench.partition("  pixel:\n")
    phone, _, proxy = rest.partition("proxy:\n")
    other = phone.replace("0A1B2C3D", "4E5F6A7B").replace("192.168.1.23", "192.168.1.24").replace("100.7", "100.8")
    return f"{head}  pixel-1:\n{phone}  pixel-2:\n{other}proxy:\n{proxy}"
