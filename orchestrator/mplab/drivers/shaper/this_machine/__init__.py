"""The kind of router ``this-machine``: the Linux host that runs mplab is the access point itself."""
