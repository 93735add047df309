"""Define ``/proc/sys/net/mptcp`` of kernels with and without Multipath TCP.

Source: the out-of-tree kernel of multipath-tcp.org, versions 0.8x and 0.9x ("Configure MPTCP").
"""

_OUT_OF_TREE = {
    "mptcp_binder_gateways": "",
    "mptcp_checksum": "1",
    "mptcp_debug": "0",
    "mptcp_enabled": "1",
    "mptcp_path_manager": "fullmesh",
    "mptcp_scheduler": "default",
    "mptcp_syn_retries": "3",
    "mptcp_version": "0",
}
_SINCE = {"mptcp_scheduler": 88, "mptcp_version": 93}
"""Version 0.NN that introduced a knob."""


def kernel_files(mptcp: str) -> dict[str, str]:
    """Return file name → content for ``out-of-tree 0.NN``; empty for ``none``, and for ``upstream`` (real files)."""
    if not mptcp.startswith("out-of-tree"):
        return {}
    version = int(mptcp.rpartition(".")[2])
    return {name: value for name, value in _OUT_OF_TREE.items() if version >= _SINCE.get(name, 0)}
