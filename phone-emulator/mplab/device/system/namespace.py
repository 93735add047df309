"""Run threads in the namespaces of another process."""

import ctypes
import os
import socket
from concurrent.futures import ThreadPoolExecutor

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_FS = 0x00000200
_CLONE_NEWNS = 0x00020000
_CLONE_NEWNET = 0x40000000
_SYS_SETRESUID = {"x86_64": 117, "aarch64": 147}
_SYS_SETRESGID = {"x86_64": 119, "aarch64": 149}
_SYS_SETGROUPS = {"x86_64": 116, "aarch64": 159}


def enter_network(pid: int) -> None:
    """Move the calling thread into the network namespace of `pid`. Raises OSError."""
    _enter(pid, "net", _CLONE_NEWNET)


def enter_files(pid: int) -> None:
    """Move the calling thread into the mount namespace of `pid`. Raises OSError."""
    _check(_LIBC.unshare(_CLONE_FS), "unshare")
    _enter(pid, "mnt", _CLONE_NEWNS)
    os.umask(0)


def become(uid: int, gid: int) -> None:
    """Change the identity of the calling thread only. Raises OSError."""
    machine = os.uname().machine
    none = ctypes.c_long(-1)
    group, user = ctypes.c_long(gid), ctypes.c_long(uid)
    _check(_LIBC.syscall(_SYS_SETGROUPS[machine], ctypes.c_long(0), None), "setgroups")
    _check(_LIBC.syscall(_SYS_SETRESGID[machine], group, group, none), "setresgid")
    _check(_LIBC.syscall(_SYS_SETRESUID[machine], user, user, none), "setresuid")


def socket_in(pid: int, family: socket.AddressFamily) -> socket.socket:
    """Return a stream socket in the network namespace of `pid`. Raises OSError."""

    def make() -> socket.socket:
        enter_network(pid)
        return socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)

    with ThreadPoolExecutor(1, thread_name_prefix="network") as thread:  # it ends in that namespace, unused
        return thread.submit(make).result()


def _enter(pid: int, kind: str, flag: int) -> None:
    descriptor = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_LIBC.setns(descriptor, flag), f"setns {kind}")
    finally:
        os.close(descriptor)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
