"""Test scenarios and transports of plug-ins without a lab (docs/plugins.md).

`plugin` provides pytest fixtures, which pytest finds by itself where mplab is installed. No module of the product
imports this package.
"""
