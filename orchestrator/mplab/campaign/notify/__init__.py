"""Messages of a campaign to people who are not there: by webhook, by e-mail.

Exports `NotifyFile`, `WebhookFile`, `MailFile` (the key ``notify:`` of a campaign file), `check_notify` (their
secrets, when the file is read), `Kind`, `KINDS`, `Message`, `Delivery`, `Notifier`.
"""

from mplab.campaign.notify.file import MailFile, NotifyFile, WebhookFile, check_notify
from mplab.campaign.notify.message import KINDS, Delivery, Kind, Message
from mplab.campaign.notify.notifier import Notifier

__all__ = [
    "KINDS",
    "Delivery",
    "Kind",
    "MailFile",
    "Message",
    "Notifier",
    "NotifyFile",
    "WebhookFile",
    "check_notify",
]
