"""What ``dumpsys`` says, by service: text made from the phone's state, in the formats of Android 10 to 16."""
