"""Run proxy and origin services as containers of one Docker engine: render configurations, start by Docker Compose."""
