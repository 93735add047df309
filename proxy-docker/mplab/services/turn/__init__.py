"""Calls: a TURN server, the page of the call app, and the speech that is played into it."""
