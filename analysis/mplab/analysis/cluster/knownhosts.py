"""Trust only known servers when runs are read and written by SFTP."""

from pathlib import Path

from paramiko import HostKeys, MissingHostKeyPolicy, PKey, SSHClient, SSHException


class KnownHosts(MissingHostKeyPolicy):
    """Trusts the servers in ``~/.ssh/known_hosts``; by default fsspec would trust any server."""

    def missing_host_key(self, client: SSHClient, hostname: str, key: PKey) -> None:
        """Check a server's key; paramiko calls this for every server, since fsspec's client loads no known hosts.

        Raises:
            SSHException: the file is missing, or does not have the server's key.
        """
        del client
        file = Path.home() / ".ssh" / "known_hosts"
        if not file.is_file() or not HostKeys(str(file)).check(hostname, key):
            raise SSHException(f"{hostname}: {file} does not have its key ({key.get_name()} {key.fingerprint})")
