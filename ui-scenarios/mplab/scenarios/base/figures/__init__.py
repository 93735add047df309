"""Figures of what `mplab.scenarios.base.scoring` scores: video playback, and sound with the bytes that carried it.

Figures that need only metrics or only packet captures are in `mplab.analysis.figures`.
"""
