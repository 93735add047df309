"""Proxy and origin services as containers: configurations rendered for images, one engine, compose."""

from mplab.drivers.proxy.docker.stack import DockerStack, ServiceState, StackSettings

__all__ = ["DockerStack", "ServiceState", "StackSettings"]
