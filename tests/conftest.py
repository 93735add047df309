"""For all tests: property tests have no deadline, since a busy host is no fault of what they test; tables are wide."""

import os

from hypothesis import HealthCheck, settings

os.environ["COLUMNS"] = "200"

settings.register_profile("mplab", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mplab")
