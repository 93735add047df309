"""The origin: the servers behind the proxy: 25 generated web sites, files to download, and the lab's names."""

from orchestrator.origin.certificates import LabAuthority, nss_database
from orchestrator.origin.files import ensure_file, stream_bytes
from orchestrator.origin.generate import build_sites
from orchestrator.origin.origin import Origin
from orchestrator.origin.sites import BuiltSite, Site, SiteIndex, SiteObject, delay_by_prefix, load_sites

__all__ = [
    "BuiltSite",
    "LabAuthority",
    "Origin",
    "Site",
    "SiteIndex",
    "SiteObject",
    "build_sites",
    "delay_by_prefix",
    "ensure_file",
    "load_sites",
    "nss_database",
    "stream_bytes",
]
