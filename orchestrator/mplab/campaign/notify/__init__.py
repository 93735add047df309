"""Send messages of a campaign to absent people, by webhook or e-mail.

Exports `check_notify` (checks the secrets of a `mplab.format.campaignfile.NotifyFile` when the campaign file is read),
`Message`, `Delivery`, `Notifier`.
"""

from mplab.campaign.notify.message import Delivery, Message
from mplab.campaign.notify.notifier import Notifier
from mplab.campaign.notify.receivers import check_notify

__all__ = ["Delivery", "Message", "Notifier", "check_notify"]
