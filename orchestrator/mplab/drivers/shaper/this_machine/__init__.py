"""Routers of the kind ``this-machine``: the Linux host that runs mplab is the access point."""
