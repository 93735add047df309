"""MPFlex: the application connections are streams of one session."""
