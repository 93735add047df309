"""Figures of the scores in `mplab.scenarios.base.scoring`: video playback, and sound with the bytes that carried it."""
