"""The tools that change something. What ends or moves a booking, or mails somebody, needs a
confirmation first: it binds the key, the arguments and the version of the booking.
"""

import uuid
from collections.abc import Mapping
from datetime import datetime

from django.utils import timezone

from agents import schemas
from agents.confirmations import (
    ARGUMENT,
    LASTS,
    PERSON,
    BadConfirmation,
    read_confirmation,
    sign_confirmation,
)
from agents.limits import count_write
from agents.records import BOOKING, Json, booking_record, clean_text, mask_email, refusal_record
from agents.schemas import Schema
from agents.tools import Call, Tool, ToolRefusal
from apps_config.operations import Answer, Operation, rehearse_operation
from apps_config.public_limits import count_booking_attempt
from availability.reserve.holds import find_hold
from booking_pages.hold_links import booking_link
from bookings.models import Booking
from common.errors import request_id_of
from common.limits.rate_limit import customer_network
from notifications.models import Delivery
from notifications.planning import VERIFICATION_CODE

DONE, REHEARSED, NOT_CONFIRMED = "done", "rehearsed", "not_confirmed"
CONFIRM_FIRST, WAITS_FOR_CODE = "confirmation_required", "waiting_for_code"
STATUSES = (DONE, REHEARSED, NOT_CONFIRMED, CONFIRM_FIRST, WAITS_FOR_CODE)
QUESTION = "confirmation"  # the name of the question to a person
PUBLIC_BOOKING = "event,resource,available_actions"
POLICIES = ("min_cancel_time", "min_reschedule_time", "max_reschedules")
OUTDATED = {
    "code": "outdated",
    "error": "The confirmation has expired, or is for another call. Call again without it.",
}


class PersonNeeded(Exception):
    """A person has to agree, whom the client asks. state: comes back with the answer."""

    def __init__(self, question: str, state: str) -> None:
        super().__init__(question)
        self.question = question
        self.state = state


def _includes(call: Call) -> Json:
    return {"include": PUBLIC_BOOKING if call.caller.is_widget else BOOKING}


def _act(call: Call, operation: Operation, **headers: str) -> Json:
    count_write(call.caller, call.request)
    key = {"HTTP_IDEMPOTENCY_KEY": call.argument("request_id")}
    return _result(call.perform(operation, **key, **headers))


def _result(answer: Answer) -> Json:
    record = answer.json["data"]
    if answer.status == 202:
        return {"status": WAITS_FOR_CODE, "hold": _hold_record(record)}
    if "state" in record:
        return {"status": DONE, "booking": booking_record(record)}
    return {"status": DONE, "hold": _hold_record(record)}


def _hold_record(hold: Json) -> Json:
    return {name: hold[name] for name in ("reservation_id", "expires_at")}


def _without_confirmation(call: Call, operation: Operation) -> Json:
    """Do what nobody is told of."""
    if not call.argument("dry_run"):
        return _act(call, operation)
    _, preview = _rehearse(call, operation, before=None)
    return {"status": REHEARSED, "preview": preview}


def _with_confirmation(call: Call, operation: Operation, booking_id: str | None = None) -> Json:
    """Do what has been confirmed; without a confirmation, say what would happen.

    booking_id: of the booking that changes. Raises PersonNeeded, ToolRefusal.
    """
    is_rehearsal = bool(call.argument("dry_run"))
    if not is_rehearsal and call.state is not None:
        return _confirmed_by_person(call, operation)
    if not is_rehearsal and call.argument("confirm") is not None:
        return _act_as_confirmed(call, operation, call.argument("confirm"), ARGUMENT)
    before, version = _present(call, booking_id)
    answer, preview = _rehearse(call, operation, before)
    if answer.is_replay:
        return _result(answer)
    if is_rehearsal:
        return {"status": REHEARSED, "preview": preview}
    return _ask(call, version, preview)


def _ask(call: Call, version: str, preview: Json) -> Json:
    way = PERSON if call.can_ask else ARGUMENT
    signed = sign_confirmation(
        version, caller=call.caller, tool=call.tool.name, arguments=call.arguments, way=way
    )
    if call.can_ask:
        raise PersonNeeded(_question(call, preview), signed)
    return {
        "status": CONFIRM_FIRST,
        "preview": preview,
        "confirm": signed,
        "expires_in": int(LASTS.total_seconds()),
    }


def _confirmed_by_person(call: Call, operation: Operation) -> Json:
    response = call.responses.get(QUESTION)
    given = response if isinstance(response, dict) else {}
    content = given.get("content")
    agrees = isinstance(content, dict) and content.get("confirm") is True
    if given.get("action") != "accept" or not agrees:
        return {"status": NOT_CONFIRMED}
    return _act_as_confirmed(call, operation, call.state or "", PERSON)


def _act_as_confirmed(call: Call, operation: Operation, signed: str, way: str) -> Json:
    try:
        version = read_confirmation(
            signed, caller=call.caller, tool=call.tool.name, arguments=call.arguments, way=way
        )
    except BadConfirmation as error:
        raise ToolRefusal(OUTDATED) from error
    return _act(call, operation, **({"HTTP_IF_MATCH": version} if version else {}))


def _present(call: Call, booking_id: str | None) -> tuple[Json | None, str]:
    """Return the booking as it is, and its ETag."""
    if booking_id is None:
        return None, ""
    answer = call.perform(Operation("GET", f"/bookings/{booking_id}", _includes(call)))
    return answer.json["data"], answer.headers["ETag"]


def _rehearse(call: Call, operation: Operation, before: Json | None) -> tuple[Answer, Json]:
    """Return the response that the operation would get, and what it would do. Raises ToolRefusal.

    A public caller's rehearsal counts as an attempt to book; its own count is undone with it.
    """
    began = timezone.now()

    def read_preview(answer: Answer) -> Json:
        record = answer.json["data"]
        after = booking_record(record) if "state" in record else None
        if after and not before:
            after["booking_id"] = None
        return {
            "before": before and booking_record(before),
            "after": after,
            "emails": _planned_emails(call, answer, began),
            "policy": _policy(before),
        }

    answer, preview = rehearse_operation(
        operation,
        caller=call.caller,
        origin=call.request,
        read=read_preview,
        HTTP_IDEMPOTENCY_KEY=call.argument("request_id"),
        **call.headers,
    )
    if call.caller.is_widget:
        network = customer_network(call.request)
        count_booking_attempt(call.caller.only_app, network=network, now=began)
    if answer.is_refusal:
        raise ToolRefusal(refusal_record(answer.json))
    return answer, preview


def _planned_emails(call: Call, answer: Answer, began: datetime) -> list[Json]:
    """Return the e-mails that the request has planned since `began`: rows of the outbox."""
    if answer.status == 202:
        return [{"to": "customer", "kind": VERIFICATION_CODE, "address": None}]
    record = answer.json["data"]
    if "state" not in record:
        return []
    seats = Booking.objects.filter(owner_booking=record["id"]).values_list("id", flat=True)
    rows = Delivery.objects.filter(
        booking__in=[record["id"], *seats],
        type=Delivery.EMAIL,
        state__in=Delivery.OPEN,
        created_at__gte=began,
        request_id=request_id_of(call.request),
    )
    return [
        {
            "to": row.recipient,
            "kind": row.kind,
            "address": row.customer and mask_email(row.customer.email),
        }
        for row in rows.select_related("customer").order_by("id")
    ]


def _policy(before: Json | None) -> Json:
    settings = ((before or {}).get("project") or {}).get("settings", {})
    return {name: settings[name] for name in POLICIES if settings.get(name) is not None}


def _question(call: Call, preview: Json) -> str:
    """Return what a person reads before agreeing: no text of a customer, and no address."""
    lines = [f"{call.tool.title}?"]
    for name in ("before", "after"):
        if booking := preview[name]:
            lines.append(f"{name.title()}: {booking['state']}, {_span(booking)}.")
    told = [" ".join(filter(None, [mail["to"], mail["address"]])) for mail in preview["emails"]]
    lines.append(f"E-mails to: {', '.join(told) or 'nobody'}.")
    if message := call.argument("message"):
        lines.append(f"Message: {clean_text(message)}")
    return "\n".join(lines)


def _span(booking: Json) -> str:
    return f"{booking['start']} to {booking['end']}"


# --- The tools ------------------------------------------------------------------------------------
def _hold_time(call: Call) -> Json:
    names = ("project_id", "resource_id", "start", "end", "quantity", "party_size", "challenge")
    body = call.chosen(*names, "reservation_time")
    result = _without_confirmation(call, Operation("POST", "/bookings/reserve", body=body))
    if "hold" in result and (link := _link_of_hold(call, result["hold"]["reservation_id"])):
        result["booking_link"] = link
    return result


def _link_of_hold(call: Call, reservation_id: str) -> str:
    """Return the link on which a person books what is held; "" if there is none."""
    hold = find_hold(call.caller.only_app, uuid.UUID(reservation_id))
    return booking_link(hold, call.argument("party_size")) if hold else ""


def _book(call: Call) -> Json:
    if call.argument("code") is not None:
        return _book_with_code(call)
    names = ("project_id", "resource_id", "reservation_id", "start", "end", "customer", "what")
    body = call.chosen(*names, "quantity", "party_size", "challenge")
    return _with_confirmation(call, Operation("POST", "/bookings", _includes(call), body))


def _book_with_code(call: Call) -> Json:
    """Make the booking that waits for its code. The person agreed to it before the code was sent.

    Raises ToolRefusal for a rehearsal: its rollback would also undo the count of wrong codes.
    """
    errors = {}
    if call.argument("reservation_id") is None:
        errors["reservation_id"] = "Is required with `code`."
    if call.argument("dry_run"):
        errors["dry_run"] = "Can't be used with `code`."
    if errors:
        raise ToolRefusal({"code": "invalid", "errors": errors})
    path = f"/bookings/reserve/{call.argument('reservation_id')}/verify"
    return _act(call, Operation("POST", path, _includes(call), call.chosen("code")))


def _reschedule(call: Call) -> Json:
    body = call.chosen("start", "end", "resource_id", "message")
    return _change(call, "reschedule", body)


def _cancel(call: Call) -> Json:
    return _apply(call, "cancel")


def _answer_request(call: Call) -> Json:
    return _apply(call, call.argument("answer"))


def _apply(call: Call, action: str) -> Json:
    """Apply an action of the graph to this booking alone."""
    body = {action: call.chosen("message"), "apply_to_bulked_bookings": False}
    return _change(call, action, body)


def _change(call: Call, action: str, body: Json) -> Json:
    booking_id = call.argument("booking_id")
    path = f"/bookings/{booking_id}/{action}"
    return _with_confirmation(call, Operation("POST", path, _includes(call), body), booking_id)


def _set_outcome(call: Call) -> Json:
    path = f"/bookings/{call.argument('booking_id')}"
    body = call.chosen("outcome")
    return _without_confirmation(call, Operation("PUT", path, _includes(call), body))


# --- What they take and return --------------------------------------------------------------------
HOLD = schemas.record(reservation_id=schemas.STRING, expires_at=schemas.STRING)
RESULT = {
    "type": "object",
    "properties": {
        "status": {
            "type": "string",
            "enum": list(STATUSES),
            "description": f"`{CONFIRM_FIRST}`: nothing has happened; show the preview to a person,"
            f" and repeat the call with `confirm`. `{WAITS_FOR_CODE}`: the customer got a code by"
            " e-mail; ask for it, and within 15 minutes repeat the call with `code`, the"
            " `reservation_id` of `hold` and a new `request_id`.",
        },
        "booking": schemas.BOOKING,
        "hold": HOLD,
        "booking_link": schemas.text(
            "A page on which a person types name and e-mail address and books what is held, once"
            " and within 10 minutes. Give it to nobody else."
        ),
        "preview": schemas.PREVIEW,
        "confirm": schemas.text("For the repeated call."),
        "expires_in": schemas.number("Seconds for which `confirm` is valid."),
    },
    "required": ["status"],
}
EACH_WRITE: Mapping[str, Schema] = {
    "request_id": schemas.REQUEST_ID,
    "dry_run": schemas.DRY_RUN,
    "zone": schemas.ZONE,
}
CONFIRMED: Mapping[str, Schema] = {**EACH_WRITE, "confirm": schemas.CONFIRM}
TO_BOOK: Mapping[str, Schema] = {
    "project_id": schemas.PROJECT,
    "resource_id": schemas.RESOURCE,
    "start": schemas.START,
    "end": schemas.END,
    "quantity": schemas.number("The units of the resource that it takes. Default: 1."),
    "party_size": schemas.number("The people who come."),
    "challenge": schemas.text("The solution of GET /v2/challenge, where the answer asks for it."),
}
MESSAGE = schemas.text("A sentence that customers read in the e-mail.", maxLength=8000)
ASKS_FIRST = " Asks for a confirmation first, with a preview of who gets an e-mail."
WRITE_TOOLS = (
    Tool(
        name="hold_time",
        title="Hold a time",
        description="Keeps a free time for some minutes, so that nobody else books it meanwhile."
        " Book it with the `reservation_id`, or give the person the `booking_link`; without that"
        " it becomes free again. There is a link for holds of two minutes and more, where the"
        " project's booking page takes bookings without a code or challenge.",
        operations=(("holds", "create"),),
        arguments={
            **TO_BOOK,
            "reservation_time": schemas.number("Seconds. Default: the project's."),
            **EACH_WRITE,
        },
        required=("project_id", "start", "end", "request_id"),
        answer=RESULT,
        run=_hold_time,
        is_write=True,
    ),
    Tool(
        name="book",
        title="Book a time",
        description="Makes a booking of a service for a customer." + ASKS_FIRST,
        operations=(("bookings", "create"), ("holds", "verify")),
        arguments={
            **TO_BOOK,
            "reservation_id": schemas.identifier("Of hold_time; with `code`, of its `hold`."),
            "code": schemas.text("Six digits, which the customer got by e-mail."),
            "customer": {
                "type": "object",
                "description": "`name`, `email`, and the fields of the service's"
                " `customer_fields`.",
            },
            "what": schemas.text("The title, if the service has none."),
            **CONFIRMED,
        },
        required=("project_id", "start", "end", "customer", "request_id"),
        answer=RESULT,
        run=_book,
        is_write=True,
    ),
    Tool(
        name="reschedule_booking",
        title="Move a booking",
        description="Moves a booking to another time, or to another resource." + ASKS_FIRST,
        operations=(("bookings", "retrieve"), ("bookings", "reschedule")),
        arguments={
            "booking_id": schemas.BOOKING_ID,
            "start": schemas.START,
            "end": schemas.END,
            "resource_id": schemas.RESOURCE,
            "message": MESSAGE,
            **CONFIRMED,
        },
        required=("booking_id", "start", "end", "request_id"),
        answer=RESULT,
        run=_reschedule,
        is_write=True,
        is_destructive=True,
    ),
    Tool(
        name="cancel_booking",
        title="Cancel a booking",
        description="Cancels a booking, whose time becomes free." + ASKS_FIRST,
        operations=(("bookings", "retrieve"), ("bookings", "apply_action")),
        arguments={"booking_id": schemas.BOOKING_ID, "message": MESSAGE, **CONFIRMED},
        required=("booking_id", "request_id"),
        answer=RESULT,
        run=_cancel,
        is_write=True,
        is_destructive=True,
    ),
    Tool(
        name="answer_request",
        title="Answer a request",
        description="Confirms or declines a request of the state `tentative`." + ASKS_FIRST,
        operations=(("bookings", "retrieve"), ("bookings", "apply_action")),
        arguments={
            "booking_id": schemas.BOOKING_ID,
            "answer": schemas.text("What the customer is told.", enum=["confirm", "decline"]),
            "message": MESSAGE,
            **CONFIRMED,
        },
        required=("booking_id", "answer", "request_id"),
        answer=RESULT,
        run=_answer_request,
        is_write=True,
        is_destructive=True,
    ),
    Tool(
        name="set_outcome",
        title="Set the outcome",
        description="Says whether the customer came. Nobody gets an e-mail.",
        operations=(("bookings", "update"),),
        arguments={
            "booking_id": schemas.BOOKING_ID,
            "outcome": schemas.CHOICE_OF_OUTCOMES,
            **EACH_WRITE,
        },
        required=("booking_id", "outcome", "request_id"),
        answer=RESULT,
        run=_set_outcome,
        is_write=True,
    ),
)
