"""Only the caller's own processes count as nodes of a lab, whatever other users name their processes."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mplab.base.enter import unshare_argv
from mplab.base.errors import LabNotReadyError
from mplab.lab.find import find_node, running_nodes

LAB = f"test-{os.getpid()}"
NOBODY = 65534
own_namespace = pytest.mark.skipif(
    subprocess.run(["unshare", "--user", "--map-root-user", "true"], check=False, capture_output=True).returncode != 0,
    reason="this machine allows no user namespaces",
)


@contextmanager
def holder(*before: str, user: int | None = None) -> Iterator[None]:
    """Run a process that claims to be the node ``phone`` of `LAB`, started by `user`."""
    environment = {"PATH": os.environ["PATH"], "MPLAB_LAB": LAB, "MPLAB_NODE": "phone"}
    with subprocess.Popen([*before, "sleep", "60"], env=environment, user=user) as process:
        try:
            yield
        finally:
            process.kill()


def found(*, within_s: float) -> bool:
    """Return whether the node is found within `within_s`: a new process needs time to start its program."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if any(node.lab == LAB for node in running_nodes()):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces are of Linux")
def test_a_node_of_the_callers_own_lab_is_found() -> None:
    user = ["unshare", "--user", "--map-root-user"] if "--user" in unshare_argv() else []
    with holder(*user):
        assert found(within_s=10)
        assert find_node("phone", lab=LAB).name == "phone"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_a_process_of_another_user_is_no_node() -> None:
    with holder(user=NOBODY):
        assert not found(within_s=0.5)
        with pytest.raises(LabNotReadyError, match="of this user is running"):
            find_node("phone", lab=LAB)


@own_namespace
@pytest.mark.skipif(os.geteuid() != 0, reason="a user's own lab is in a user namespace of his")
def test_what_another_user_namespace_shows_is_no_node_of_root() -> None:
    with holder("unshare", "--user", "--map-root-user", "--mount"):
        assert not found(within_s=0.5)
    with holder("unshare", "--user", "--map-root-user", "--mount", user=NOBODY):
        assert not found(within_s=0.5)
