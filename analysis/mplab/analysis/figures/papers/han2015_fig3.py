"""Plot the distribution of page load times with losses on WiFi, single-path TCP (han2015 fig. 3)."""

from mplab.analysis.figures.pageloads import page_loads
from mplab.analysis.figures.scored import over_links

NOTHING = "it compares page load times under several losses, and fewer than two link conditions have them"

FIGURE = page_loads(3, "Page load time with losses on WiFi, single-path TCP", over_links, NOTHING)
