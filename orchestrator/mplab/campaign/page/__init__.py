"""A campaign as one page without script: as a file, and by a small server on this machine that only reads.

Exports `Night` (all that a page shows), `read_night`, `render`, `write_page`, `serve`.
"""

from mplab.campaign.page.night import Night, read_night
from mplab.campaign.page.render import render, write_page
from mplab.campaign.page.server import serve

__all__ = ["Night", "read_night", "render", "serve", "write_page"]
