"""Servers that are trusted when runs are reached by SFTP."""

from pathlib import Path

from paramiko import HostKeys, MissingHostKeyPolicy, PKey, SSHClient, SSHException


class KnownHosts(MissingHostKeyPolicy):
    """Those that ``~/.ssh/known_hosts`` names; fsspec alone would trust any server."""

    def missing_host_key(self, client: SSHClient, hostname: str, key: PKey) -> None:
        """Asked for every server, since fsspec's client knows none; raises `SSHException` when it is not trusted."""
        del client
        file = Path.home() / ".ssh" / "known_hosts"
        if not file.is_file() or not HostKeys(str(file)).check(hostname, key):
            raise SSHException(f"{hostname}: {file} does not have its key ({key.get_name()} {key.fingerprint})")
