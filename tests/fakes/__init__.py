"""A lab in memory: phone, shaper, proxy, services, captures, clock. Cells and runs take milliseconds in it."""
