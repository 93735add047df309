"""Draw figures of video playback, and of recorded sound together with the bytes that the phone received during it.

Figures that need only metrics or only packet captures are in `mplab.analysis.figures`.
"""
