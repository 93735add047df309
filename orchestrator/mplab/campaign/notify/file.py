"""Read and check the files that the key ``notify:`` of a campaign file names."""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from mplab.base.errors import InputError
from mplab.base.files import read_secret
from mplab.format.campaignfile import NotifyFile
from mplab.format.names import is_loopback
from mplab.userfiles.check import Checker
from mplab.userfiles.yaml import KeyPath


def beside(folder: Path, path: str) -> Path:
    """Return a path relative to `folder`, with ``~`` expanded."""
    return folder / Path(path).expanduser()


def read_url(path: Path) -> str:
    """Read the URL in a private file.

    Raises:
        InputError: the file is unusable, or its content is not a URL to which a secret may be sent.
    """
    url = read_secret(path)
    try:
        parts = urlsplit(url)
        good = bool(parts.hostname) and parts.port != 0 and not re.search(r"\s", url)
    except ValueError:
        good = False
    if not good or parts.scheme not in {"https", "http"}:
        raise InputError(f"{path}: an https URL is needed in it")
    if parts.scheme == "http" and not is_loopback(str(parts.hostname)):
        raise InputError(f"{path}: an https URL is needed: the URL is a secret, http is for this machine alone")
    return url


def check_notify(checker: Checker, path: KeyPath, notify: NotifyFile, folder: Path) -> None:
    """Add the problems of the files that ``notify:`` names to `checker`.

    Args:
        checker: checker of the campaign file.
        path: path of the key ``notify`` in the file.
        notify: value of the key.
        folder: folder of the campaign file, to which names of files are relative.
    """
    if notify.webhook is not None:
        _note(checker, (*path, "webhook", "url_file"), read_url, beside(folder, notify.webhook.url_file))
        _check_authorities(checker, (*path, "webhook", "ca_file"), notify.webhook.ca_file, folder)
    if notify.mail is not None:
        if notify.mail.password_file:
            _note(checker, (*path, "mail", "password_file"), read_secret, beside(folder, notify.mail.password_file))
        _check_authorities(checker, (*path, "mail", "ca_file"), notify.mail.ca_file, folder)


def _check_authorities(checker: Checker, path: KeyPath, name: str, folder: Path) -> None:
    if name and not beside(folder, name).is_file():
        checker.add(path, f"no such file: {beside(folder, name)}")


def _note(checker: Checker, path: KeyPath, read: Callable[[Path], str], file: Path) -> None:
    try:
        read(file)
    except InputError as error:
        checker.add(path, str(error))
