"""The scenario `youtube`: see README.md."""
