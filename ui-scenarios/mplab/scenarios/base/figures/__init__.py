"""Figures of the scores in `mplab.scenarios.base.scoring`: video playback, and sound with the bytes that carried it.

Figures of all metrics, and of captures alone, are in `mplab.analysis.figures`.
"""
