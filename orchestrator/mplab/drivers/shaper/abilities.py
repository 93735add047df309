"""What each shaper can do."""

from collections.abc import Mapping

from mplab.format.abilities import Abilities

LINKEM = Abilities(
    "the link emulator of the virtual lab", disciplines=("drop-tail", "codel", "fq_codel"), rate_kbps=500_000.0
)
"""As docs/linkem.md has it."""

TC = Abilities(
    "traffic control (an OpenWrt router, a Linux server, a phone)",
    disciplines=("drop-tail", "codel", "fq_codel", "cake"),
    traces=False,
)
"""As docs/routers.md has it; what a router, server or phone has of it, it says itself."""

SHAPERS: Mapping[str, Abilities] = {"linkem": LINKEM, "tc": TC}
