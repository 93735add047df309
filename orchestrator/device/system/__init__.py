"""What runs behind the device's shell: namespaces, a root folder, files, processes."""

from orchestrator.device.system.files import FileThread
from orchestrator.device.system.system import System, SystemSettings

__all__ = ["FileThread", "System", "SystemSettings"]
