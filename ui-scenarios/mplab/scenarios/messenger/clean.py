"""Check that an app in a browser starts without stored data."""

from collections.abc import Mapping

from mplab.base.errors import StepError
from mplab.drivers.ui import BrowserUi

_SCRIPT = """
const count = (name, promise) => promise.then(found => [name, found.length]);
const resources = performance.getEntriesByType('resource').filter(entry => entry.name.startsWith('http'));
return Promise.all([
  count('cookies', Promise.resolve(document.cookie.split(';').filter(Boolean))),
  count('local_storage', Promise.resolve(Object.keys(localStorage))),
  count('session_storage', Promise.resolve(Object.keys(sessionStorage))),
  count('databases', indexedDB.databases()),
  count('caches', caches.keys()),
  count('service_workers', navigator.serviceWorker.getRegistrations()),
  count('from_cache', Promise.resolve(resources.filter(entry => entry.transferSize === 0))),
]).then(Object.fromEntries);
"""


def check_clean(ui: BrowserUi) -> Mapping[str, int]:
    """Return the number of items in each kind of storage of the open page; all are 0.

    Raises:
        StepError: some storage has items.
    """
    found: dict[str, int] = ui.evaluate(_SCRIPT)
    left = [f"{name}: {count}" for name, count in found.items() if count]
    if left:
        raise StepError(f"messenger: the app does not begin clean: {', '.join(left)}")
    return found
