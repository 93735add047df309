"""Single-path TCP whose connections alternate between the networks."""
