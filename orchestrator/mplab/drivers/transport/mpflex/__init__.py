"""MPFlex: application connections are streams of one session, which uses a path on every interface."""
