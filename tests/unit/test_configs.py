"""Files that only their owner can read."""

from pathlib import Path

from mplab.base.configs import write_private


def test_a_private_file_is_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "new" / "secret"
    write_private(file, "one")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    file.chmod(0o644)
    write_private(file, "two")
    assert (file.stat().st_mode & 0o777, file.read_text()) == (0o600, "two")
