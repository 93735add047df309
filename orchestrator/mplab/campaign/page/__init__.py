"""Show a campaign as an HTML page without scripts: in a file, and by a small read-only server on this machine.

Exports `Night` (the content of the page), `read_night`, `render`, `serve`, `write_page`.
"""

from mplab.campaign.page.night import Night, read_night
from mplab.campaign.page.render import render, write_page
from mplab.campaign.page.server import serve

__all__ = ["Night", "read_night", "render", "serve", "write_page"]
