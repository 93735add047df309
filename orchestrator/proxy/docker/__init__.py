"""Proxy and origin services as containers: configurations rendered for images, one engine, compose."""

from orchestrator.proxy.docker.stack import DockerStack, ServiceState, StackSettings

__all__ = ["DockerStack", "ServiceState", "StackSettings"]
