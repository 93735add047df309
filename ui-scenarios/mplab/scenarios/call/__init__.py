"""A call: recorded speech from a desktop to the phone, over TURN and TCP."""
