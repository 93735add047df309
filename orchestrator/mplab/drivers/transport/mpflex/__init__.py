"""MPFlex: application connections are streams of one session."""
