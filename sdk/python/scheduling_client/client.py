"""The synchronous client: aio.py without its `await`.

Made by scripts/write_python_client.py: don't change it by hand."""

# ruff: noqa: UP028

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, Unpack

import httpx

from scheduling_client import core, models
from scheduling_client.core import Answer, Attempts, Call, Retries, call, part
from scheduling_client.errors import VerificationRequired
from scheduling_client.pages import ChangesPage, M, Page

if TYPE_CHECKING:  # a tenth of the time that the import of the package takes
    from scheduling_client import inputs

Text = str | Sequence[str]


class Client:
    """A client of one app of the service.

    url: the service's address. key: a server key, a widget key or an access token. app: the slug of
    the app, for keys of several. timezone: the zone of the times in answers, UTC by default.
    timeout: seconds without a connection or a further byte of the answer, after which an attempt
    ends. strict: misspelt keys of bodies are refused. http: an httpx client of your own, say with a
    proxy; `close` closes it too.

    Raises ConnectionFailed, UnexpectedAnswer, and for answers of 3xx, 4xx and 5xx a subclass of
    Refused.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        app: str | None = None,
        timezone: str | None = None,
        timeout: float = 30.0,
        retries: Retries = core.RETRIES,
        strict: bool = True,
        http: httpx.Client | None = None,
    ) -> None:
        self.url = core.base_url(url)
        self._headers = core.common_headers(key=key, app=app, timezone=timezone, strict=strict)
        self._retries = retries
        self._timeout = timeout
        self._http = http or httpx.Client()
        self.app = AppApi(self)
        self.availability = Availability(self)
        self.bookings = Bookings(self)
        self.calendars = Calendars(self)
        self.changes = Changes(self)
        self.credentials = Credentials(self)
        self.customers = Customers(self)
        self.deliveries = Deliveries(self)
        self.events = Events(self)
        self.holds = Holds(self)
        self.projects = Projects(self)
        self.reports = Reports(self)
        self.resources = Resources(self)
        self.schedules = Schedules(self)
        self.templates = Templates(self)
        self.webhooks = Webhooks(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        takes_key: bool = True,
    ) -> Answer:
        """Send any request, such as `request("GET", "/v2/projects/hosted/check-up")`.

        takes_key: False for the few writes that refuse an Idempotency-Key, such as POST
        /v2/calendars/connect; they are sent once.
        """
        written = call(
            method.upper(),
            path,
            query=query,
            body=body,
            headers=headers,
            key=idempotency_key,
            takes_key=takes_key,
        )
        return self.send(written)

    def send(self, call: Call) -> Answer:
        """Send a request, and again where this is harmless and may help."""
        attempts = Attempts(call, self._retries)
        while True:
            try:
                response = self._http.request(
                    call.method,
                    self.url + call.path,
                    params=call.query,
                    content=call.content,
                    headers={**self._headers, **call.headers},
                    timeout=self._timeout,
                )
            except httpx.RequestError as error:
                wait = attempts.wait_after_failure()
                if wait is None:
                    raise attempts.failure(error) from error
            else:
                answer = (response.status_code, response.headers, response.content)
                wait = attempts.wait_after_answer(*answer)
                if wait is None:
                    return attempts.read(*answer)
            time.sleep(wait)


class Pages(Generic[M]):
    """A list. Iteration reads it part by part, by cursor: no object is skipped or repeated while
    others are added or deleted. `pages` reads it by page numbers, and so does an iteration of a
    list with `page`.
    """

    def __init__(self, client: Client, path: str, query: Mapping[str, Any], model: type[M]) -> None:
        self._client = client
        self._path = path
        given = {name: value for name, value in query.items() if value is not None}
        self._query = {"limit": 100, **given}
        self._model = model

    def page(self, number: int = 1) -> Page[M]:
        """Return one page, counted from 1."""
        query = {**self._query, "page": number}
        answer = self._client.send(call("GET", self._path, query=query))
        return Page.read(answer.body, self._model)

    def pages(self) -> Iterator[Page[M]]:
        """Return the pages, from `page` of the query on."""
        number = int(self._query.get("page", 1))
        while True:
            page = self.page(number)
            yield page
            if page.number >= page.last:
                return
            number += 1

    def __iter__(self) -> Iterator[M]:
        if "page" in self._query:
            for page in self.pages():
                for item in page.items:
                    yield item
            return
        query = {"cursor": "", **self._query}
        while query["cursor"] is not None:
            answer = self._client.send(call("GET", self._path, query=query))
            for each in answer.body["data"]:
                yield self._model(each)
            query["cursor"] = answer.body.get("next_cursor")


class Part:
    """The requests about one kind of object."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def _list(self, path: str, query: Mapping[str, Any], model: type[M]) -> Pages[M]:
        return Pages(self._client, path, query, model)

    def _get(self, path: str, model: type[M], query: Mapping[str, Any] | None = None) -> M:
        return model((self._client.send(call("GET", path, query=query))).data)

    def _all(self, path: str, model: type[M]) -> Sequence[M]:
        return [model(each) for each in (self._client.send(call("GET", path))).data]

    def _search(self, path: str, model: type[M], body: Mapping[str, Any]) -> Sequence[M]:
        answer = self._client.send(call("POST", path, body=body, is_search=True))
        return [model(each) for each in answer.data]

    def _write(
        self,
        method: str,
        path: str,
        model: type[M],
        body: Mapping[str, Any] | None = None,
        key: str | None = None,
        include: Text = (),
    ) -> M:
        query = {"include": include or None}
        written = call(method, path, query=query, body=body, key=key)
        return model((self._client.send(written)).data)

    def _delete(self, path: str) -> None:
        self._client.send(call("DELETE", path))


class AppApi(Part):
    """The app of the key: its settings."""

    def get(self, *, include: Text = ()) -> models.App:
        return self._get("/v2/app", models.App, {"include": include or None})

    def update(
        self, slug: str, *, idempotency_key: str | None = None, **body: Unpack[inputs.AppInput]
    ) -> models.App:
        path = f"/v2/apps/{part(slug)}"
        return self._write("PUT", path, models.App, body, idempotency_key)


class Availability(Part):
    """Free time. `from_` is the key `from`."""

    def search(self, **query: Unpack[inputs.Query]) -> Sequence[models.Slot]:
        """Return the free slots of a project or of resources."""
        return self._search("/v2/availability", models.Slot, query)

    def count(self, **query: Unpack[inputs.Query]) -> Sequence[models.Count]:
        """Return the number of free slots of each day."""
        return self._search("/v2/availability/count", models.Count, query)

    def dates(self, **query: Unpack[inputs.Query]) -> Sequence[models.Date]:
        """Return the days with free slots."""
        return self._search("/v2/availability/dates", models.Date, query)

    def explain(self, **query: Unpack[inputs.Query]) -> Sequence[models.Explanation]:
        """Return why times are free, or not."""
        return self._search("/v2/availability/explain", models.Explanation, query)


Action = Literal[
    "cancel", "cancel_by_customer", "cancel_by_owner", "complete", "confirm", "decline", "pay"
]


class Bookings(Part):
    def list(self, **query: Unpack[inputs.ListBookings]) -> Pages[models.Booking]:
        """Return the bookings with these properties, the newest first."""
        return self._list("/v2/bookings", query, models.Booking)

    def get(self, booking_id: str, *, include: Text = ()) -> models.Booking:
        path = f"/v2/bookings/{part(booking_id)}"
        return self._get(path, models.Booking, {"include": include or None})

    def create(
        self,
        *,
        include: Text = (),
        idempotency_key: str | None = None,
        **body: Unpack[inputs.BookingBody],
    ) -> models.Booking:
        """Book. Raises SlotTaken, NotAvailable, VerificationRequired, and others."""
        query = {"include": include or None}
        written = call("POST", "/v2/bookings", query=query, body=body, key=idempotency_key)
        made = (self._client.send(written)).data
        if "verification" in made:
            hold = models.Unverified(made)
            raise VerificationRequired(hold.reservation_id, hold.expires_at)
        return models.Booking(made)

    def verify(
        self,
        reservation_id: str,
        code: str,
        *,
        include: Text = (),
        idempotency_key: str | None = None,
    ) -> models.Booking:
        """Book what `create` held, with the code of the e-mail. Raises Invalid for a wrong code."""
        path = f"/v2/bookings/reserve/{part(reservation_id)}/verify"
        body = {"code": code}
        return self._write("POST", path, models.Booking, body, idempotency_key, include)

    def update(
        self,
        booking_id: str,
        *,
        include: Text = (),
        idempotency_key: str | None = None,
        **body: Unpack[inputs.BookingChange],
    ) -> models.Booking:
        path = f"/v2/bookings/{part(booking_id)}"
        return self._write("PUT", path, models.Booking, body, idempotency_key, include)

    def delete(self, booking_id: str) -> None:
        self._delete(f"/v2/bookings/{part(booking_id)}")

    def reschedule(
        self,
        booking_id: str,
        *,
        include: Text = (),
        idempotency_key: str | None = None,
        **body: Unpack[inputs.Reschedule],
    ) -> models.Booking:
        """Move the booking to another time. Raises SlotTaken, NotAvailable, and others."""
        path = f"/v2/bookings/{part(booking_id)}/reschedule"
        return self._write("POST", path, models.Booking, body, idempotency_key, include)

    def act(
        self,
        booking_id: str,
        action: Action,
        *,
        message: str | None = None,
        scope: Literal["this", "following", "all"] | None = None,
        include: Text = (),
        idempotency_key: str | None = None,
    ) -> models.Booking:
        """Carry out an action of the booking's graph. message: for its customers. scope: of a
        series. Raises ActionNotAllowed, PolicyViolated."""
        body: dict[str, Any] = {action: {"message": message}} if message else {}
        body |= {"scope": scope} if scope else {}
        path = f"/v2/bookings/{part(booking_id)}/{part(action)}"
        return self._write("PUT", path, models.Booking, body, idempotency_key, include)

    def cancel(
        self, booking_id: str, *, message: str | None = None, idempotency_key: str | None = None
    ) -> models.Booking:
        """`act(booking_id, "cancel")`."""
        key = idempotency_key
        return self.act(booking_id, "cancel", message=message, idempotency_key=key)

    def create_many(
        self, *, idempotency_key: str | None = None, **body: Unpack[inputs.NewBulk]
    ) -> Sequence[models.BulkOutcome]:
        """Make several bookings; each outcome has its booking or its error."""
        return self._bulk("POST", body, idempotency_key)

    def update_many(
        self, *, idempotency_key: str | None = None, **body: Unpack[inputs.BulkChanges]
    ) -> Sequence[models.BulkOutcome]:
        """Change several bookings; each outcome has its booking or its error."""
        return self._bulk("PUT", body, idempotency_key)

    def _bulk(
        self, method: str, body: Mapping[str, Any], key: str | None
    ) -> Sequence[models.BulkOutcome]:
        answer = self._client.send(call(method, "/v2/bookings/bulk", body=body, key=key))
        return [models.BulkOutcome(each) for each in answer.data]

    def groups(self, **query: Unpack[inputs.ListGroups]) -> Pages[models.Booking]:
        """Return the bookings that have seats."""
        return self._list("/v2/bookings/groups", query, models.Booking)


class Holds(Part):
    """Time that is kept for some minutes."""

    def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[inputs.HoldBody]
    ) -> models.Hold:
        path = "/v2/bookings/reserve"
        return self._write("POST", path, models.Hold, body, idempotency_key)

    def extend(
        self, *, idempotency_key: str | None = None, **body: Unpack[inputs.Extension]
    ) -> models.Hold:
        path = "/v2/bookings/reserve/extend"
        return self._write("PUT", path, models.Hold, body, idempotency_key)

    def release(self, reservation_id: str) -> None:
        self._delete(f"/v2/bookings/reserve/{part(reservation_id)}")


class Calendars(Part):
    def list(self, **query: Unpack[inputs.ListCalendars]) -> Pages[models.Calendar]:
        return self._list("/v2/calendars", query, models.Calendar)

    def get(self, calendar_id: str) -> models.Calendar:
        return self._get(f"/v2/calendars/{part(calendar_id)}", models.Calendar)

    def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[inputs.NewCalendar]
    ) -> models.Calendar:
        return self._write("POST", "/v2/calendars", models.Calendar, body, idempotency_key)

    def update(
        self,
        calendar_id: str,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[inputs.CalendarInput],
    ) -> models.Calendar:
        path = f"/v2/calendars/{part(calendar_id)}"
        return self._write("PUT", path, models.Calendar, body, idempotency_key)

    def delete(self, calendar_id: str) -> None:
        self._delete(f"/v2/calendars/{part(calendar_id)}")


class Changes(Part):
    """The app's changes, each once, in an order that never changes."""

    def latest_cursor(self) -> str:
        """Return the present place: only later changes come after it."""
        return (self.list()).cursor

    def list(
        self, cursor: str | None = None, *, types: Text = (), limit: int = 1000
    ) -> ChangesPage:
        """Return the changes after the cursor; without one only the present cursor.

        Raises CursorExpired after 30 days.
        """
        query = {"cursor": cursor, "types": types or None, "limit": limit}
        answer = self._client.send(call("GET", "/v2/changes", query=query))
        return ChangesPage.read(answer.body)

    def follow(
        self, cursor: str | None = None, *, types: Text = (), interval: float = 5.0
    ) -> Iterator[models.ListedChange]:
        """Return all changes after the cursor, then wait for further ones, without end.

        cursor: a change's `cursor`, `latest_cursor()`, or the cursor of a webhook call; without
        one, only changes from now on. types: such as `["booking", "customer"]`. interval: seconds
        between two requests while there are no changes. Raises CursorExpired after 30 days.
        """
        etag = ""
        while True:
            query = {"cursor": cursor, "types": types or None, "limit": 1000}
            headers = {"If-None-Match": etag} if etag else {}
            asked = call("GET", "/v2/changes", query=query, headers=headers)
            answer = self._client.send(asked)
            if answer.status != 304:
                page = ChangesPage.read(answer.body)
                for change in page.changes:
                    yield change
                # The ETag is that of the answer to the same request.
                etag = answer.headers.get("ETag", "") if cursor == page.cursor else ""
                cursor = page.cursor
                if page.has_more:
                    continue
            time.sleep(interval)


class Credentials(Part):
    """The app's keys."""

    def list(self, **query: Unpack[inputs.ListCredentials]) -> Pages[models.Credential]:
        return self._list("/v2/credentials", query, models.Credential)

    def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[inputs.NewCredential]
    ) -> models.Credential:
        """Only this answer has the `key`."""
        path = "/v2/credentials"
        return self._write("POST", path, models.Credential, body, idempotency_key)

    def delete(self, credential_id: str) -> None:
        self._delete(f"/v2/credentials/{part(credential_id)}")


class Customers(Part):
    """The people of the bookings, by their e-mail addresses."""

    def list(self, **query: Unpack[inputs.ListCustomers]) -> Pages[models.Person]:
        return self._list("/v2/customers", query, models.Person)

    def export(self, email: str) -> models.PersonExport:
        """Return everything that is stored about a person."""
        return self._get("/v2/customers/export", models.PersonExport, {"email": email})

    def erase(self, email: str, *, idempotency_key: str | None = None) -> models.Erased:
        """Remove a person's data."""
        body = {"email": email}
        path = "/v2/customers/erase"
        return self._write("POST", path, models.Erased, body, idempotency_key)


class Deliveries(Part):
    """The log of all e-mails and webhook calls."""

    def list(self, **query: Unpack[inputs.ListDeliveries]) -> Pages[models.Delivery]:
        return self._list("/v2/deliveries", query, models.Delivery)

    def get(self, delivery_id: str) -> models.Delivery:
        return self._get(f"/v2/deliveries/{part(delivery_id)}", models.Delivery)

    def redeliver(self, delivery_id: str, *, idempotency_key: str | None = None) -> models.Delivery:
        path = f"/v2/deliveries/{part(delivery_id)}/redeliver"
        return self._write("POST", path, models.Delivery, None, idempotency_key)


class Events(Part):
    """Time in calendars."""

    def list(self, **query: Unpack[inputs.ListEvents]) -> Pages[models.Event]:
        return self._list("/v2/events", query, models.Event)

    def get(self, event_id: str) -> models.Event:
        return self._get(f"/v2/events/{part(event_id)}", models.Event)

    def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[inputs.NewEvent]
    ) -> models.Event:
        return self._write("POST", "/v2/events", models.Event, body, idempotency_key)

    def update(
        self,
        event_id: str,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[inputs.EventInput],
    ) -> models.Event:
        path = f"/v2/events/{part(event_id)}"
        return self._write("PUT", path, models.Event, body, idempotency_key)

    def delete(self, event_id: str) -> None:
        self._delete(f"/v2/events/{part(event_id)}")


class Projects(Part):
    """Bookable services."""

    def list(self, **query: Unpack[inputs.ListProjects]) -> Pages[models.Project]:
        return self._list("/v2/projects", query, models.Project)

    def get(self, project_id: str, *, include: Text = ()) -> models.Project:
        path = f"/v2/projects/{part(project_id)}"
        return self._get(path, models.Project, {"include": include or None})

    def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[inputs.NewProject]
    ) -> models.Project:
        return self._write("POST", "/v2/projects", models.Project, body, idempotency_key)

    def update(
        self,
        project_id: str,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[inputs.ProjectInput],
    ) -> models.Project:
        path = f"/v2/projects/{part(project_id)}"
        return self._write("PUT", path, models.Project, body, idempotency_key)

    def put_by_external_id(
        self,
        external_id: str,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[inputs.ProjectInput],
    ) -> models.Project:
        """Change the project with this `external_id`, or create it."""
        path = f"/v2/projects/by-external-id/{part(external_id)}"
        return self._write("PUT", path, models.Project, body, idempotency_key)

    def delete(self, project_id: str) -> None:
        self._delete(f"/v2/projects/{part(project_id)}")


class Reports(Part):
    """Numbers of days. `from_` is the parameter `from`."""

    def utilisation(self, **query: Unpack[inputs.GetUtilisationReport]) -> models.UtilisationReport:
        return models.UtilisationReport(self._report("utilisation", query))

    def outcomes(self, **query: Unpack[inputs.GetOutcomesReport]) -> models.OutcomesReport:
        return models.OutcomesReport(self._report("outcomes", query))

    def lead_time(self, **query: Unpack[inputs.GetLeadTimeReport]) -> models.LeadTimeReport:
        return models.LeadTimeReport(self._report("lead-time", query))

    def sources(self, **query: Unpack[inputs.GetSourcesReport]) -> models.SourcesReport:
        return models.SourcesReport(self._report("sources", query))

    def customers(self, **query: Unpack[inputs.GetCustomersReport]) -> models.CustomersReport:
        return models.CustomersReport(self._report("customers", query))

    def _report(self, name: str, query: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = self._client.send(call("GET", f"/v2/reports/{name}", query=query))
        body: Mapping[str, Any] = answer.body
        return body


class Resources(Part):
    """People and things that can be booked."""

    def list(self, **query: Unpack[inputs.ListResources]) -> Pages[models.Resource]:
        return self._list("/v2/resources", query, models.Resource)

    def get(self, resource_id: str, *, include: Text = ()) -> models.Resource:
        path = f"/v2/resources/{part(resource_id)}"
        return self._get(path, models.Resource, {"include": include or None})

    def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[inputs.NewResource]
    ) -> models.Resource:
        """Only this answer has the resource's `api_token`."""
        return self._write("POST", "/v2/resources", models.Resource, body, idempotency_key)

    def update(
        self,
        resource_id: str,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[inputs.ResourceInput],
    ) -> models.Resource:
        path = f"/v2/resources/{part(resource_id)}"
        return self._write("PUT", path, models.Resource, body, idempotency_key)

    def put_by_external_id(
        self,
        external_id: str,
        /,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[inputs.ResourceInput],
    ) -> models.Resource:
        """Change the resource with this `external_id`, or create it."""
        path = f"/v2/resources/by-external-id/{part(external_id)}"
        return self._write("PUT", path, models.Resource, body, idempotency_key)

    def delete(self, resource_id: str) -> None:
        self._delete(f"/v2/resources/{part(resource_id)}")


class Schedules(Part):
    """Rules that several resources share."""

    def list(self, **query: Unpack[inputs.ListSchedules]) -> Pages[models.Schedule]:
        return self._list("/v2/schedules", query, models.Schedule)

    def get(self, schedule_id: str) -> models.Schedule:
        return self._get(f"/v2/schedules/{part(schedule_id)}", models.Schedule)

    def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[inputs.NewSchedule]
    ) -> models.Schedule:
        return self._write("POST", "/v2/schedules", models.Schedule, body, idempotency_key)

    def update(
        self,
        schedule_id: str,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[inputs.ScheduleInput],
    ) -> models.Schedule:
        path = f"/v2/schedules/{part(schedule_id)}"
        return self._write("PUT", path, models.Schedule, body, idempotency_key)

    def delete(self, schedule_id: str) -> None:
        self._delete(f"/v2/schedules/{part(schedule_id)}")


class Templates(Part):
    """The texts of e-mails."""

    def list(self) -> Sequence[models.EmailTemplate]:
        return self._all("/v2/templates", models.EmailTemplate)

    def get(self, slug: str) -> models.EmailTemplate:
        return self._get(f"/v2/templates/{part(slug)}", models.EmailTemplate)

    def update(
        self,
        slug: str,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[inputs.EmailTemplateInput],
    ) -> models.EmailTemplate:
        """Change the texts; None restores the service's own."""
        path = f"/v2/templates/{part(slug)}"
        return self._write("PUT", path, models.EmailTemplate, body, idempotency_key)


class Webhooks(Part):
    def list(self) -> Sequence[models.Webhook]:
        return self._all("/v2/webhooks", models.Webhook)

    def get(self, webhook_id: str) -> models.Webhook:
        return self._get(f"/v2/webhooks/{part(webhook_id)}", models.Webhook)

    def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[inputs.NewWebhook]
    ) -> models.Webhook:
        """Only this answer has the `secret`."""
        return self._write("POST", "/v2/webhooks", models.Webhook, body, idempotency_key)

    def update(
        self,
        webhook_id: str,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[inputs.WebhookInput],
    ) -> models.Webhook:
        path = f"/v2/webhooks/{part(webhook_id)}"
        return self._write("PUT", path, models.Webhook, body, idempotency_key)

    def delete(self, webhook_id: str) -> None:
        self._delete(f"/v2/webhooks/{part(webhook_id)}")

    def rotate(self, webhook_id: str, *, idempotency_key: str | None = None) -> models.Webhook:
        """Make a new secret; calls are signed with both for 24 hours."""
        path = f"/v2/webhooks/{part(webhook_id)}/rotate"
        return self._write("POST", path, models.Webhook, None, idempotency_key)

    def test(self, webhook_id: str, *, idempotency_key: str | None = None) -> models.Delivery:
        """Send the newest booking to the webhook."""
        path = f"/v2/webhooks/{part(webhook_id)}/test"
        return self._write("POST", path, models.Delivery, None, idempotency_key)
