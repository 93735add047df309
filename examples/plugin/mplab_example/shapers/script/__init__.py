"""A router that its owner's command shapes."""
