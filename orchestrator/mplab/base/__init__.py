"""Lowest layer: errors, undo, locks, processes, paths. Imports nothing else of mplab.

Belongs here: code that at least two other layers need. Not here: anything that knows experiments, cells or devices.

* Processes: `programs`, `enter` and `kernel` (namespaces, capabilities), `supervisor`, `lock`, `undo`, `polling`,
  `timelimit`, `load`, `machine`.
* Network: `nodes`, `endpoints`, `ports`, `counters`, `outages`.
* Plug-ins and drivers: `plugins`, `plugintrace`, `drivers`, `configs`, `installed`, `deferred`.
* Files and messages: `paths`, `files`, `logs`, `errors`, `findings`, `suggest`, `humanize`.
* User interfaces: `browser` (control of Chromium), `hierarchy` (elements on an Android screen).
"""
