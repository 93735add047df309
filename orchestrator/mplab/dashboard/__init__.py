"""Show runs and campaigns as web pages, read-only: ``mplab serve``, and the page that a campaign writes to disk.

`mplab.dashboard.watch` reads the folders, `mplab.dashboard.render` writes HTML, and `mplab.dashboard.app` answers
requests. Only `app`, `serving` and `openmetrics` need the extra ``serve``.
"""
