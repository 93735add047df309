"""An in-memory lab: phone, shaper, proxy, services, captures, clock. A cell or a run in it takes milliseconds."""
