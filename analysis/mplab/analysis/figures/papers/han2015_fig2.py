"""Plot the distribution of page load times over HTTP/1.1 and HTTP/2 (han2015 fig. 2)."""

from mplab.analysis.figures.pageloads import page_loads
from mplab.analysis.figures.scored import over_scenarios

NOTHING = "it compares page load times over two protocols, and fewer than two scenarios have them"

FIGURE = page_loads(2, "Page load time over HTTP/1.1 and HTTP/2", over_scenarios, NOTHING)
