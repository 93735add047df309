"""Kernels with and without Multipath TCP: what stands in ``/proc/sys/net/mptcp``.

The out-of-tree kernel of multipath-tcp.org, versions 0.8x and 0.9x (multipath-tcp.org, "Configure MPTCP").
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
"""Version 0.NN in which a knob appeared."""


def kernel_files(mptcp: str) -> dict[str, str]:
    """File name → content, for ``none`` and ``out-of-tree 0.NN``; nothing for ``upstream``, where the real ones are."""
    if not mptcp.startswith("out-of-tree"):
        return {}
    version = int(mptcp.rpartition(".")[2])
    return {name: value for name, value in _OUT_OF_TREE.items() if version >= _SINCE.get(name, 0)}
