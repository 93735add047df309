"""Compare mptrace's tables with the output of tshark, tcptrace and mptcptrace for the same captures.

`check` runs the tool, parses its output, matches flows by addresses, ports and time, and compares field by field. A
deviation is *explained* when the two tools define the quantity differently, a `Definition` documents that, and the
numbers fit it. Any other deviation is a *difference*.
"""
