"""Plot the distribution of page load times with a longer round trip on one path (han2015 fig. 6)."""

from mplab.analysis.figures.pageloads import page_loads
from mplab.analysis.figures.scored import over_links

NOTHING = "it compares page load times with several round trips, and fewer than two link conditions have them"

FIGURE = page_loads(6, "Page load time with a longer round trip on one path", over_links, NOTHING)
