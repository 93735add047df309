"""What the largest MPTCP connection sent when, and on which subflow."""

from analysis.figures.shapes.sequence import TimeSequence

ORDER = 70
REPORT = True
FIGURE = TimeSequence(
    title="Time-sequence diagram",
    paper="baerts2015 ch. 5 (mptcptrace's time-sequence graphs)",
    caption="Data of the largest Multipath TCP connection with two subflows; crosses are data sent again.",
)
