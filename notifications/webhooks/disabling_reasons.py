"""Why the service disables a webhook: stored texts, which owners read in their language by mail."""

ANSWERED_GONE = "The receiver returned 410 Gone."
NEVER_SUCCEEDED = "No call has succeeded for five days."
