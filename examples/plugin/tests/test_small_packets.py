"""The transport `small-packets`: it changes the phone, and undoes the change."""

from mplab.base.undo import UndoStack
from mplab.testing.transports import RecordingPhone


def test_the_interface_is_narrowed_and_restored(mplab_transport, mplab_left_by) -> None:
    phone, transport = RecordingPhone(), mplab_transport("small-packets")
    with UndoStack() as undo:
        transport.setup(phone, undo)
        assert phone.left() == ["link wlan0: mtu 576"]
    assert phone.left() == []
    assert mplab_left_by(transport) == []
