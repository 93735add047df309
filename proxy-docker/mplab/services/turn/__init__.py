"""The service `turn`, calls: a TURN server, the page of the call app, and the speech that the caller plays."""
