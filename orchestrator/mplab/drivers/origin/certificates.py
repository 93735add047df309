"""Certificate authority of the lab, and an NSS database with which a browser trusts it."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from mplab.base.deferred import deferred
from mplab.base.errors import LabNotReadyError
from mplab.base.programs import CERTUTIL

VALID_FOR = timedelta(days=30)
_CLOCK_SLACK = timedelta(days=1)
_TIMEOUT_S = 30.0


class Authority(Protocol):
    """Certificate authority of a lab."""

    ca_pem: Path
    """Certificate of the authority."""

    def issue(self, name: str, host_names: list[str]) -> Path:
        """Write ``<name>.pem``: key and certificate chain for `host_names` (wildcards allowed). Return its path."""

    def issued(self, name: str) -> Path:
        """Return the path of the certificate that `issue` has written, or will write, for `name`."""


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
        """Write ``<name>.pem``: key and certificate chain for `host_names` (wildcards allowed). Return its path."""
        now = datetime.now(UTC)
        leaf = self._authority.issue_cert(*host_names, not_before=now - _CLOCK_SLACK, not_after=now + self._valid_for)
        path = self.issued(name)
        path.touch(mode=0o600)
        leaf.private_key_and_cert_chain_pem.write_to_path(str(path))
        return path

    def issued(self, name: str) -> Path:
        """Return the path to which `issue` writes the certificate `name`."""
        return self._directory / f"{name}.pem"


class KnownAuthority:
    """`Authority` of an earlier process. Its certificates are on disk; without its private key, it issues no new ones.

    Args:
        directory: folder of the certificates.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.ca_pem = directory / "ca.pem"

    def issue(self, name: str, host_names: list[str]) -> Path:
        """Raise RuntimeError: the private key ended with the process that made it."""
        raise RuntimeError(f"{name}: no certificate for {', '.join(host_names)}: the authority's key is gone")

    def issued(self, name: str) -> Path:
        """Return the path of the certificate `name`."""
        return self._directory / f"{name}.pem"


def nss_database(directory: Path, ca_pem: Path) -> Path:
    """Make an NSS database in `directory` that trusts `ca_pem` as authority for servers; return the folder.

    Chromium uses the database in ``$HOME/.pki/nssdb``.

    Raises:
        LabNotReadyError: certutil is missing or failed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    database = f"sql:{directory}"
    _certutil("-N", "-d", database, "--empty-password")
    _certutil("-A", "-d", database, "-n", "mplab lab authority", "-t", "C,,", "-i", str(ca_pem))
    return directory


def _certutil(*arguments: str) -> None:
    argv = [str(CERTUTIL.path()), *arguments]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise LabNotReadyError(f"certutil: {' '.join(argv)} failed ({done.returncode}): {done.stderr.strip()}")
