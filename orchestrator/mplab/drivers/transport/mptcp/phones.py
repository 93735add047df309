"""Decide from a phone's root access and kernel whether kernel Multipath TCP is possible."""

from mplab.drivers.phone.kernel import KernelMptcp

NO_SECOND_SUBFLOW = "without root there is no second subflow: no MPTCP endpoint can be added"


def problem_of(kernel: KernelMptcp, *, rooted: bool) -> str:
    """Return why a phone with this kernel has no Multipath TCP with two subflows, or ""."""
    if kernel.kind == "none":
        return "its kernel has no Multipath TCP"
    if kernel.kind == "upstream":
        if not rooted:
            return NO_SECOND_SUBFLOW
        return "" if kernel.endpoints else "its ip does not know 'ip mptcp': no endpoint can be added"
    if rooted:
        return ""
    if kernel.enabled and kernel.path_manager in {"fullmesh", "ndiffports"}:
        return ""
    state = f"enabled {int(kernel.enabled)}, path manager {kernel.path_manager or 'unknown'}"
    return f"its kernel is set so that there is no second subflow ({state}), and only root can change that"


def cell_problem_of(kernel: KernelMptcp) -> str:
    """Return why cells cannot use the Multipath TCP of a rooted phone, or "".

    The proxy implements only RFC 8684, not the older protocol of the patches of multipath-tcp.org.
    """
    if kernel.kind == "out-of-tree":
        return f"its kernel has that of the patches {kernel.version}".rstrip() + ", which proxies would not understand"
    return problem_of(kernel, rooted=True)


def note_of(kernel: KernelMptcp) -> str:
    """Return a note about the patches of multipath-tcp.org in a kernel; "" for other kernels."""
    if kernel.kind != "out-of-tree":
        return ""
    backup = "" if kernel.multipath else "; its ip does not know 'multipath': no backup paths"
    return (
        f"out-of-tree {kernel.version or 'of unknown version'}, path manager {kernel.path_manager}, "
        f"scheduler {kernel.scheduler}{backup}"
    )
