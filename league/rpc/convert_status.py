"""Names of conversions that the servicers still call; see `league.rpc.convert`."""

from league.rpc.convert import to_message

to_status = to_event = to_message
