"""An SFTP server on loopback: a folder of runs that is reached over a network."""

import io
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import paramiko

PASSWORD = "let me in"  # noqa: S105 - of this server alone


class Login(paramiko.ServerInterface):
    """Accepts logins with the password."""

    def check_auth_password(self, username: str, password: str) -> int:
        known = password == PASSWORD
        return int(paramiko.common.AUTH_SUCCESSFUL if known else paramiko.common.AUTH_FAILED)

    def get_allowed_auths(self, username: str) -> str:
        return "password"

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return int(paramiko.common.OPEN_SUCCEEDED)


class Files(paramiko.SFTPServerInterface):
    """The files below a folder; errors of the system become SFTP errors."""

    root = Path("/nonexistent")

    def _path(self, path: str) -> Path:
        return self.root / self.canonicalize(path).lstrip("/")

    def list_folder(self, path: str) -> list[paramiko.SFTPAttributes] | int:
        try:
            paths = sorted(self._path(path).iterdir())
            return [paramiko.SFTPAttributes.from_stat(entry.stat(), entry.name) for entry in paths]
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or 0)

    def stat(self, path: str) -> paramiko.SFTPAttributes | int:
        try:
            return paramiko.SFTPAttributes.from_stat(self._path(path).stat())
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or 0)

    lstat = stat

    def open(self, path: str, flags: int, attr: paramiko.SFTPAttributes) -> paramiko.SFTPHandle | int:
        writes = bool(flags & (os.O_WRONLY | os.O_RDWR))
        try:
            file = io.FileIO(os.open(self._path(path), flags, 0o644), "w" if writes else "r")
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or 0)
        handle = Handle(flags)
        handle.filename = str(self._path(path))
        handle.readfile = handle.writefile = file
        return handle

    def remove(self, path: str) -> int:
        return self._done(lambda: self._path(path).unlink())

    def posix_rename(self, oldpath: str, newpath: str) -> int:
        return self._done(lambda: self._path(oldpath).replace(self._path(newpath)))

    def mkdir(self, path: str, attr: paramiko.SFTPAttributes) -> int:
        return self._done(lambda: self._path(path).mkdir())

    @staticmethod
    def _done(call: Callable[[], object]) -> int:
        try:
            call()
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or 0)
        return int(paramiko.sftp.SFTP_OK)


class Handle(paramiko.SFTPHandle):
    """An open file."""

    filename: str
    readfile: io.FileIO
    writefile: io.FileIO

    def stat(self) -> paramiko.SFTPAttributes | int:
        return paramiko.SFTPAttributes.from_stat(os.fstat(self.readfile.fileno()))


@contextmanager
def serving(root: Path, home: Path) -> Iterator[str]:
    """Serve `root` and yield its URL; write the server's key to the known hosts in `home`."""
    host_key = paramiko.ECDSAKey.generate()
    files = type("FilesHere", (Files,), {"root": root})
    transports: list[paramiko.Transport] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def serve() -> None:
            with suppress(OSError):
                while True:
                    transport = paramiko.Transport(listener.accept()[0])
                    transports.append(transport)
                    transport.add_server_key(host_key)
                    transport.set_subsystem_handler("sftp", paramiko.SFTPServer, files)
                    with suppress(paramiko.SSHException, EOFError):
                        transport.start_server(event=threading.Event(), server=Login())

        threading.Thread(target=serve, daemon=True).start()
        (home / ".ssh").mkdir(parents=True, exist_ok=True)
        entry = f"[127.0.0.1]:{port} {host_key.get_name()} {host_key.get_base64()}\n"
        (home / ".ssh" / "known_hosts").write_text(entry)
        yield f"sftp://127.0.0.1:{port}/"
    for transport in transports:
        transport.close()
