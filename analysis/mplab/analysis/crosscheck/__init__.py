"""Our tables against what tshark, tcptrace and mptcptrace say of the same captures.

`check` runs the tool, reads its output (parsing is pure on text), matches flows by addresses, ports and time, and
compares field by field. A difference is *explained* when a documented definition (`Definition`) says that both numbers
are right for what each tool counts, and the numbers fit that; else it is a difference.
"""
