"""Make the Linux system calls that Python's `os` lacks: namespaces and identities of one thread, and prctl(2)."""

import ctypes
import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_FS = 0x00000200
_CLONE_NEWNS = 0x00020000
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_SYS_SETRESUID = {"x86_64": 117, "aarch64": 147}
_SYS_SETRESGID = {"x86_64": 119, "aarch64": 149}
_SYS_SETGROUPS = {"x86_64": 116, "aarch64": 159}


def die_with_parent(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Make the kernel signal this process when its parent ends. Call only in a process that has just been forked.

    The kernel sends `number` when the thread of `parent` that forked this process ends (``PR_SET_PDEATHSIG``,
    prctl(2)). If `parent` has ended already, the process exits with code 1.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Make this process the parent of all its descendants whose parent ends (``PR_SET_CHILD_SUBREAPER``, prctl(2))."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def enter_network(pid: int) -> None:
    """Move the calling thread into the network namespace of process `pid`. Raises OSError."""
    _enter(pid, "net", _CLONE_NEWNET)


def enter_files(pid: int) -> None:
    """Move the calling thread into the mount namespace of process `pid`. Raises OSError."""
    _check(_LIBC.unshare(_CLONE_FS), "unshare")
    _enter(pid, "mnt", _CLONE_NEWNS)
    os.umask(0)


def become(uid: int, gid: int) -> None:
    """Set the user and group id of the calling thread only, and drop its other groups. Raises OSError."""
    machine = os.uname().machine
    none = ctypes.c_long(-1)
    group, user = ctypes.c_long(gid), ctypes.c_long(uid)
    _check(_LIBC.syscall(_SYS_SETGROUPS[machine], ctypes.c_long(0), None), "setgroups")
    _check(_LIBC.syscall(_SYS_SETRESGID[machine], group, group, none), "setresgid")
    _check(_LIBC.syscall(_SYS_SETRESUID[machine], user, user, none), "setresuid")


def socket_in(pid: int, family: socket.AddressFamily) -> socket.socket:
    """Return a new stream socket in the network namespace of process `pid`. Raises OSError.

    The socket stays in that namespace; the calling thread does not enter it.
    """

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
