"""The tools that read."""

from collections.abc import Callable, Mapping

from agents import schemas
from agents.records import BOOKING, Json, booking_record, resource_record, service_record
from agents.schemas import Schema
from agents.tools import Call, Tool
from apps_config.operations import Answer, Operation

MAX_TIMES = 50
PER_PAGE = 25


def _list_services(call: Call) -> Json:
    page = call.argument("page")
    answer = call.perform(Operation("GET", "/projects", {"limit": PER_PAGE, "page": page}))
    return _page(answer, "services", service_record)


def _list_resources(call: Call) -> Json:
    page = call.argument("page")
    answer = call.perform(Operation("GET", "/resources", {"limit": PER_PAGE, "page": page}))
    return _page(answer, "resources", resource_record)


def _list_bookings(call: Call) -> Json:
    filters = call.chosen("project_id", "resource_id", "state", "page")
    span = {"start": call.argument("from"), "end": call.argument("to")}
    order = {"orderBy": "start", "sortedBy": "asc"}
    query = {**filters, **span, **order, "limit": PER_PAGE, "include": BOOKING}
    answer = call.perform(Operation("GET", "/bookings", query))
    return _page(answer, "bookings", booking_record)


def _get_booking(call: Call) -> Json:
    path = f"/bookings/{call.argument('booking_id')}"
    answer = call.perform(Operation("GET", path, {"include": BOOKING}))
    return {"booking": booking_record(answer.json["data"])}


def _page(answer: Answer, name: str, record: Callable[[Json], Json]) -> Json:
    found = answer.json
    return {
        name: [record(each) for each in found["data"]],
        "more": found["current_page"] < found["last_page"],
    }


def _availability_body(call: Call) -> Json:
    body = call.chosen("project_id", "from", "to", "length", "quantity", "party_size")
    if resource_id := call.argument("resource_id"):
        body["resources"] = [resource_id]
    return body


def _find_times(call: Call) -> Json:
    answer = call.perform(Operation("POST", "/availability", body=_availability_body(call)))
    found = answer.json["data"]
    times = [
        {name: each[name] for name in ("start", "end", "resources")} for each in found[:MAX_TIMES]
    ]
    return {"times": times, "more": len(found) > MAX_TIMES}


def _explain_time(call: Call) -> Json:
    answer = call.perform(Operation("POST", "/availability/explain", body=_availability_body(call)))
    return {"explanations": [_explanation(each) for each in answer.json["data"]]}


def _explanation(found: Json) -> Json:
    segments = [
        {
            "start": segment["start"],
            "end": segment["end"],
            "available": segment["available"],
            "reasons": [
                {name: reason[name] for name in ("type", "text")} for reason in segment["reasons"]
            ],
        }
        for segment in found["segments"][:MAX_TIMES]
    ]
    return {
        "resource": found["resource"],
        "never_open": found["never_open"],
        "segments": segments,
    }


SEARCH: Mapping[str, Schema] = {
    "project_id": schemas.PROJECT,
    "resource_id": schemas.RESOURCE,
    "from": schemas.text("ISO 8601, or a time from now such as `2 days`. Default: now."),
    "to": schemas.text("As `from`. Default: the project's."),
    "length": schemas.text("Such as `30 minutes`. Default: the project's."),
    "quantity": schemas.number("The units that the booking takes. Default: 1."),
    "party_size": schemas.number("The people who come."),
    "zone": schemas.ZONE,
}
READ_TOOLS = (
    Tool(
        name="list_services",
        title="List services",
        description="What can be booked: each service (a project) with its length and the fields"
        " that its customers fill in.",
        operations=(("projects", "list"),),
        arguments={"page": schemas.PAGE},
        required=(),
        answer=schemas.record(services=schemas.list_of(schemas.SERVICE), more=schemas.MORE),
        run=_list_services,
    ),
    Tool(
        name="find_times",
        title="Find free times",
        description=f"Free times of a service, sorted by start, at most {MAX_TIMES}. If there are"
        " `more`, ask again with the last start as `from`. Only these times can be booked; explain"
        " others with explain_time.",
        operations=(("availability", "search"),),
        arguments=SEARCH,
        required=("project_id",),
        answer=schemas.record(times=schemas.list_of(schemas.TIME), more=schemas.MORE),
        run=_find_times,
    ),
    Tool(
        name="explain_time",
        title="Explain a time",
        description="Why times are free or not, for each resource of a service: segments with"
        f" their reasons, at most {MAX_TIMES} for each.",
        operations=(("availability", "explain"),),
        arguments=SEARCH,
        required=("project_id", "from", "to"),
        answer=schemas.record(explanations=schemas.list_of(schemas.EXPLANATION)),
        run=_explain_time,
    ),
    Tool(
        name="list_bookings",
        title="List bookings",
        description=f"Bookings that overlap a range, by start, {PER_PAGE} on a page.",
        operations=(("bookings", "list"),),
        arguments={
            "from": schemas.text("ISO 8601. Default: no limit."),
            "to": schemas.text("ISO 8601. Default: no limit."),
            "project_id": schemas.PROJECT,
            "resource_id": schemas.RESOURCE,
            "state": schemas.text("A state, or several separated by commas, such as `confirmed`."),
            "page": schemas.PAGE,
            "zone": schemas.ZONE,
        },
        required=(),
        answer=schemas.record(bookings=schemas.list_of(schemas.BOOKING), more=schemas.MORE),
        run=_list_bookings,
    ),
    Tool(
        name="get_booking",
        title="Get a booking",
        description="One booking, with its customers and the actions that are possible.",
        operations=(("bookings", "retrieve"),),
        arguments={"booking_id": schemas.BOOKING_ID, "zone": schemas.ZONE},
        required=("booking_id",),
        answer=schemas.record(booking=schemas.BOOKING),
        run=_get_booking,
    ),
    Tool(
        name="list_resources",
        title="List resources",
        description="The people, rooms and things that are booked.",
        operations=(("resources", "list"),),
        arguments={"page": schemas.PAGE},
        required=(),
        answer=schemas.record(
            resources=schemas.list_of(schemas.RESOURCE_RECORD), more=schemas.MORE
        ),
        run=_list_resources,
    ),
)
