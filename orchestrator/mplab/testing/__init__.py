"""For authors of plug-ins: what tests of scenarios and transports need, without a lab (docs/plugins.md).

`plugin` has it as pytest fixtures, which pytest finds by itself where mplab is installed. Nothing of the product
imports this package.
"""
