"""Certificate authority of the lab, which issues the certificates of its servers."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from mplab.base.deferred import deferred

VALID_FOR = timedelta(days=30)
_CLOCK_SLACK = timedelta(days=1)


class Authority(Protocol):
    """Certificate authority of a lab."""

    ca_pem: Path
    """Certificate of the authority."""

    def issue(self, name: str, host_names: list[str]) -> Path:
        """Issue a certificate for `host_names` (wildcards allowed); write it and its key to ``<name>.pem``.

        Returns:
            The path of the file, which contains the key and the certificate chain.
        """

    def issued(self, name: str) -> Path:
        """Return the path of ``<name>.pem``, to which `issue` has written, or will write, a certificate."""


class LabAuthority:
    """`Authority` that this process makes; its private key exists only in memory.

    Args:
        directory: folder for the certificates, mode 0700; `ca_pem` in it is the authority's certificate.
        valid_for: validity of the certificates.
    """

    def __init__(self, directory: Path, *, valid_for: timedelta = VALID_FOR) -> None:
        with deferred("slow to import, needed by labs alone"):
            import trustme
        self._valid_for = valid_for
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory
        self._authority = trustme.CA(organization_name="mplab", organization_unit_name="lab authority")
        self.ca_pem = directory / "ca.pem"
        self._authority.cert_pem.write_to_path(str(self.ca_pem))

    def issue(self, name: str, host_names: list[str]) -> Path:
        """Issue a certificate for `host_names` (wildcards allowed); write it and its key to ``<name>.pem``.

        Returns:
            The path of the file, which contains the key and the certificate chain.
        """
        now = datetime.now(UTC)
        leaf = self._authority.issue_cert(*host_names, not_before=now - _CLOCK_SLACK, not_after=now + self._valid_for)
        path = self.issued(name)
        path.touch(mode=0o600)
        leaf.private_key_and_cert_chain_pem.write_to_path(str(path))
        return path

    def issued(self, name: str) -> Path:
        """Return the path of ``<name>.pem``, to which `issue` has written, or will write, a certificate."""
        return self._directory / f"{name}.pem"


class KnownAuthority:
    """`Authority` made by another process. It finds issued certificates on disk; without the key, it cannot issue more.

    Args:
        directory: folder of the certificates.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.ca_pem = directory / "ca.pem"

    def issue(self, name: str, host_names: list[str]) -> Path:
        """Raise RuntimeError: only the process that made the authority has its private key."""
        raise RuntimeError(f"{name}: no certificate for {', '.join(host_names)}: the authority's key is gone")

    def issued(self, name: str) -> Path:
        """Return the path of ``<name>.pem``, the certificate that the other process has issued."""
        return self._directory / f"{name}.pem"
