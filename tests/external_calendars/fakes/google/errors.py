"""Errors of Google's APIs, in their JSON."""

from typing import Any

from tests.external_calendars.fakes.server import Response

# Reason -> status, domain, message, and where the request is wrong.
ERRORS: dict[str, tuple[int, str, str, tuple[str, str] | None]] = {
    "badRequest": (400, "global", "Bad Request", None),
    "invalid": (400, "global", "Invalid Value", None),
    "required": (400, "global", "Required", None),
    "timeRangeEmpty": (
        400,
        "calendar",
        "The specified time range is empty.",
        ("parameter", "timeMax"),
    ),
    "channelIdNotUnique": (
        400,
        "global",
        "Channel id not unique",
        ("other", "entity.id"),
    ),
    "push.webhookUrlNotHttps": (400, "global", "WebHook callback must be HTTPS", None),
    "authError": (401, "global", "Invalid Credentials", ("header", "Authorization")),
    "forbidden": (403, "global", "Forbidden", None),
    "insufficientPermissions": (
        403,
        "global",
        "Request had insufficient authentication scopes.",
        None,
    ),
    "requiredAccessLevel": (
        403,
        "calendar",
        "You need to have writer access to this calendar.",
        None,
    ),
    "rateLimitExceeded": (403, "usageLimits", "Rate Limit Exceeded", None),
    "userRateLimitExceeded": (403, "usageLimits", "User Rate Limit Exceeded", None),
    "quotaExceeded": (403, "usageLimits", "Calendar usage limits exceeded.", None),
    "notFound": (404, "global", "Not Found", None),
    "duplicate": (409, "global", "The requested identifier already exists.", None),
    "deleted": (410, "global", "Resource has been deleted", None),
    "fullSyncRequired": (
        410,
        "calendar",
        "Sync token is no longer valid, a full sync is required.",
        ("parameter", "syncToken"),
    ),
    "conditionNotMet": (412, "global", "Precondition Failed", ("header", "If-Match")),
    "backendError": (503, "global", "Backend Error", None),
}


class ApiError(Exception):
    """An answer of the real API to a request that it understands and refuses."""

    def __init__(self, reason: str, message: str = "", *, location: str = "") -> None:
        super().__init__(message or reason)
        self.reason, self.message, self.location = reason, message, location


def error_response(reason: str, message: str = "", location: str = "", **headers: str) -> Response:
    """`location`: the parameter that is wrong. headers: Retry_After="7" for Retry-After."""
    status = ERRORS[reason][0]
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if status == 401:
        named["WWW-Authenticate"] = (
            'Bearer realm="https://accounts.google.com/", error="invalid_token"'
        )
    return Response(status, error_body(reason, message, location), named)


def error_body(reason: str, message: str = "", location: str = "") -> dict[str, Any]:
    status, domain, text, place = ERRORS[reason]
    if location:
        place = ("parameter", location)
    error = {"domain": domain, "reason": reason, "message": message or text}
    if place:
        error |= {"locationType": place[0], "location": place[1]}
    return {"error": {"errors": [error], "code": status, "message": message or text}}
