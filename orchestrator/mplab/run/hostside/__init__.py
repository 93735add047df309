"""Host process of a run: checks, locks, hooks, containers, junit.xml, analysis.

Belongs here: code that runs outside the lab, as the user. Not here: functions for callers (`mplab.run`), code that runs
in the lab's namespaces (`labside`).
"""
