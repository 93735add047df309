"""Messages of a campaign to people who are not there: by webhook, by e-mail.

Exports `check_notify` (the secrets of `mplab.format.notify.NotifyFile`, when the file is read), `Message`, `Delivery`,
`Notifier`.
"""

from mplab.campaign.notify.file import check_notify
from mplab.campaign.notify.message import Delivery, Message
from mplab.campaign.notify.notifier import Notifier

__all__ = ["Delivery", "Message", "Notifier", "check_notify"]
