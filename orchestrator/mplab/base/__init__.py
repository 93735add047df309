"""Lowest layer: errors, undo, locks, processes, paths. Imports nothing else of mplab.

Belongs here: code that at least two other layers need. Not here: anything that knows experiments, cells or devices.
"""
