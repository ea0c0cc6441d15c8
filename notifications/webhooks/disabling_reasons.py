"""Why the service disables a webhook: stored texts, which owners read in their language by mail."""

from common.messages import Message

ANSWERED_GONE = Message("The receiver returned 410 Gone.")
NEVER_SUCCEEDED = Message("No call has succeeded for five days.")
