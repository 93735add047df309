"""Lowest layer: errors, undo, locks, processes, paths. Imports nothing else of mplab."""
