"""Settings of all tests: no deadline for property tests, because the host may be busy; wide tables."""

import os

from hypothesis import HealthCheck, settings

os.environ["COLUMNS"] = "200"

settings.register_profile("mplab", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mplab")
