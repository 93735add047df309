"""Proxy and origin services as containers: configurations rendered for images, one engine, Docker Compose."""
