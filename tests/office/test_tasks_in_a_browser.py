"""Tasks of the people at the back office, with their clicks and typed fields counted from Today."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps_config.models import Account
from availability.models import Event, Project, Resource
from bookings.models import Booking
from bookings.services.postponed import carry_out_due
from notifications.models import Delivery
from tests.accessibility import find_faults, load_axe
from tests.browser import Page, viewports
from tests.office.conftest import Visit, member_of
from tests.world import Tenant

OPEN = [{"allow_hours": {"start": 0, "end": 24}}]
LUNCH = "9-12, 13-17"
MAX_TABS = 400  # from the top of a long form to its end
# Names that belong to the API alone.
RAW = re.compile(
    r"\b(confirm_decline|instant_payment|group_\w+|(allow|block)_\w+|roundrobin_\w+|cancel(led)?_by_\w+"
    r"|no_show|when_\w+|secs|mins)\b"
)
JSON = re.compile(r'[\[{]\s*"|\{\}|\[\]')
TYPED = "#content :is(input:not([type=hidden], [type=radio], [type=checkbox]), textarea)"
SHOW_TIMES = "document.querySelector('[data-show-times]')"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-", re.IGNORECASE)


class Person:
    """A person at a page, whose clicks and typed fields are counted."""

    def __init__(self, visit: Visit) -> None:
        self.page = visit.page
        self.expected = visit.expected
        self.actions = 0

    def click(self, selector: str) -> None:
        """Press what leads to no other page."""
        self.actions += 1
        self.page.click(selector)

    def go(self, selector: str) -> None:
        """Follow a link or send a form."""
        self.expected.append("net::ERR_ABORTED")  # what the page before still asked for
        self.page.evaluate("window.isOld = true")
        self.click(selector)
        self.page.wait_for("window.isOld === undefined && document.readyState === 'complete'")

    def fill(self, selector: str, text: str) -> None:
        """Replace a field's text, as typed."""
        self.actions += 1
        self.page.wait_for(f"!!document.querySelector({selector!r})")
        self.page.evaluate(
            f"document.querySelector({selector!r}).focus();"
            f" document.querySelector({selector!r}).select?.()"
        )
        self.page.type(text)

    def choose(self, selector: str, value: str) -> None:
        self.actions += 1
        self.page.evaluate(
            f"(() => {{ const one = document.querySelector({selector!r}); one.value = {value!r};"
            " one.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )


class KeyboardPerson(Person):
    """The same without a mouse: every element is reached by Tab."""

    def click(self, selector: str) -> None:
        self.actions += 1
        self.reach(selector)
        is_box = self.page.evaluate("document.activeElement.type === 'checkbox'")
        self.page.press(" " if is_box else "Enter")

    def fill(self, selector: str, text: str) -> None:
        self.actions += 1
        self.reach(selector)
        self.page.type(text)

    def choose_next(self, selector: str) -> None:
        """Choose the option after the present one."""
        self.actions += 1
        self.reach(selector)
        self.page.press("ArrowDown")

    def reach(self, selector: str) -> None:
        self.page.wait_for(
            f"document.readyState === 'complete' && !!document.querySelector({selector!r})"
        )
        self.page.tab_to(selector, most=MAX_TABS)


@pytest.fixture
def at_today(visit: Callable[..., Visit], office: Tenant) -> Callable[..., Person]:
    office.put(f"/apps/{office.app.slug}", {"settings": {"default_timezone": "Europe/Berlin"}})
    return lambda account, **kind: Person(visit(account, "/admin/", **kind))


@pytest.fixture
def by_keyboard(at_today: Any, visit: Callable[..., Visit]) -> Callable[..., KeyboardPerson]:
    return lambda account, **kind: KeyboardPerson(visit(account, "/admin/", **kind))


def link(text: str) -> str:
    return f"#nav-sidebar a[href$='{text}'], nav a[href$='{text}'], a[href$='{text}']"


def test_block_lunch_of_everybody(
    at_today: Any, office: Tenant, editor: Account, ada: Any, bob: Any
) -> None:
    person = at_today(editor, width=1280)
    person.go("a[href$='/admin/calendar/block']")
    person.click("[name=everybody]")
    send_value(person, "first_day", "2030-11-29")
    send_value(person, "start", "12:00")
    send_value(person, "end", "13:00")
    person.go("#block-time button[type=submit]")

    assert person.actions == 3 + 3
    assert person.page.evaluate("location.pathname") == "/admin/calendar/"
    blocked = Event.objects.values_list("resource__name", flat=True)
    assert sorted(blocked) == ["Ada", "Bob"]


def book_tomorrow(office: Tenant, resource: Any, count: int) -> str:
    """Bookings of the resource, in UTC, and the day."""
    day = (timezone.now() + timedelta(days=1)).date().isoformat()
    for hour in range(9, 9 + count):
        times = {"start": f"{day} {hour:02}:00:00", "end": f"{day} {hour:02}:30:00"}
        assert office.book(resource_id=resource["id"], **times).status == 201
    return day


@pytest.mark.parametrize("way", ["mouse", "keyboard"])
def test_ill_tomorrow_takes_five_clicks_and_one_text(
    at_today: Any, by_keyboard: Any, office: Tenant, editor: Account, way: str
) -> None:
    """The customers are told, the day is closed."""
    who = office.make_resource("Dr. Who", availability_constraints=OPEN)
    office.make_resource("Eve", availability_constraints=OPEN)
    day = book_tomorrow(office, who, 3)
    person = (by_keyboard if way == "keyboard" else at_today)(editor, width=1280)

    person.go("#content a[href$='/admin/calendar/away']")
    if way == "keyboard":
        person.choose_next("[name=resource]")
    else:
        person.choose("[name=resource]", who["id"])
    send_value(person, "first_day", day)
    person.go("#away button[type=submit]")
    person.fill("#message", "Dr. Who is ill, sorry.")
    person.go("#away-do [name=save]")
    lines = person.page.texts(".office-steps li")
    faults = find_faults(person.page, load_axe())
    carry_out_due(now=timezone.now() + timedelta(seconds=11))

    assert person.actions == 5 + 1
    assert len(lines) == 3
    assert faults == []
    assert list(Booking.objects.values_list("state", flat=True)) == ["cancelled"] * 3
    mails = Delivery.objects.filter(kind="cancelled", recipient="customer")
    assert set(mails.values_list("content__message", flat=True)) == {"Dr. Who is ill, sorry."}
    event = Event.objects.get(what="Away")
    assert (event.start.date().isoformat(), event.busy) == (day, True)


def test_undo_of_an_absence_takes_one_key(
    by_keyboard: Any, visit: Callable[..., Visit], office: Tenant, editor: Account
) -> None:
    who = office.make_resource("Dr. Who", availability_constraints=OPEN)
    day = book_tomorrow(office, who, 2)
    page = visit(editor, f"/admin/calendar/away?resource={who['id']}&first_day={day}").page
    person = KeyboardPerson(Visit(page, ""))

    person.go("#away-do [name=save]")
    page.wait_for("document.activeElement.textContent === 'Undo'")  # when the page is drawn
    page.evaluate("window.isOld = true")
    page.press("Enter")
    page.wait_for("window.isOld === undefined && document.readyState === 'complete'")
    carry_out_due(now=timezone.now() + timedelta(seconds=11))

    assert person.actions == 1
    assert page.evaluate("location.pathname") == "/admin/"
    assert list(Booking.objects.values_list("state", flat=True)) == ["confirmed"] * 2
    assert Event.objects.filter(what="Away").count() == 0


@pytest.mark.parametrize(("width", "scheme"), viewports(only="narrow"))
def test_pages_of_an_absence_are_accessible(
    visit: Callable[..., Visit], office: Tenant, editor: Account, width: int, scheme: str
) -> None:
    who = office.make_resource("Dr. Who", availability_constraints=OPEN)
    eve = office.make_resource("Eve", availability_constraints=OPEN)
    terms = {"length": "30 mins", "to": "3 days"}
    project = office.make_project(who["id"], eve["id"], availability=terms)
    day = book_tomorrow(office, who, 2)
    Booking.objects.update(project=project["id"])
    path = f"/admin/calendar/away?resource={who['id']}&first_day={day}"
    page = visit(editor, path, width=width, height=1600, scheme=scheme).page
    person = Person(Visit(page, ""))

    person.go("#away-do [name=preview]")
    page.save_screenshot(f"away-{width}-{scheme}")
    faults = find_faults(page, load_axe())
    wide = page.evaluate("document.documentElement.scrollWidth")
    person.go("#away-do [name=save]")
    page.save_screenshot(f"postponed-{width}-{scheme}")
    faults += find_faults(page, load_axe())

    assert (faults, wide <= width) == ([], True)


def send_value(person: Person, name: str, value: str) -> None:
    """Fill a field of a day or a time, whose parts a browser shows in the order of its language."""
    person.choose(f"[name={name}]", value)


def test_dragged_time_is_blocked(at_today: Any, office: Tenant, editor: Account, ada: Any) -> None:
    person = at_today(editor, width=1280)
    person.go(link("/admin/calendar/"))
    person.page.wait_for("document.getElementById('cal-grid').dataset.drawn > 0")
    person.page.evaluate("document.getElementById('cal-new').click()")
    person.go("#cal-block")

    assert (
        person.page.evaluate("[...document.querySelectorAll('[name=resources]:checked')].length")
        == 1
    )


RESOURCES, PROJECTS = "/admin/availability/resource/", "/admin/availability/project/"


def test_a_dentist_with_a_lunch_break_gets_a_page(
    by_keyboard: Any, office: Tenant, editor: Account
) -> None:
    person = by_keyboard(editor)
    page = person.page

    person.go(link(RESOURCES))
    person.go(link(f"{RESOURCES}add/"))
    person.fill("#id_name", "Dr. Who")
    person.fill("#id_hours_0", LUNCH)
    person.click("[data-copy-day]")
    person.go("[name=_save]")
    person.go("a[href*='/project/add/?resources=']")
    person.fill("#id_name", "Check-up")
    person.go("[name=_save]")
    address = page.evaluate("document.querySelector('#page-address').value")

    project, dentist = Project.objects.get(), Resource.objects.get()
    assert person.actions <= 14
    assert address.endswith("/book/check-up")
    assert (project.is_published, list(project.resources.all())) == (True, [dentist])
    assert dentist.timezone == "Europe/Berlin"
    assert dentist.availability_constraints == [
        {"allow_day_and_time": {"day": day, "start": start, "end": end}}
        for day in ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
        for start, end in ((9, 12), (13, 17))
    ]


@pytest.mark.parametrize(("width", "scheme"), viewports(only="wide"))
def test_christmas_eve_is_closed_and_one_saturday_is_open(
    at_today: Any, office: Tenant, editor: Account, width: int, scheme: str
) -> None:
    hours = [
        {"allow_day_and_time": {"day": day, "start": start, "end": end}}
        for day in ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
        for start, end in ((9, 12), (13, 17))
    ]
    dentist = office.make_resource(
        "Dr. Who", timezone="Europe/Berlin", availability_constraints=hours
    )
    today = timezone.now().date()
    saturday = today + timedelta(days=(5 - today.weekday()) % 7 + 7)
    christmas = f"{today.year + 1}-12-24"
    person = at_today(editor, width=width, scheme=scheme)
    page = person.page

    if width < 600:  # the menu is behind a button
        person.actions += 2
        path = f"{RESOURCES}{dentist['id']}/change/"
        page.evaluate(f"window.isOld = true; location.href = '{path}'")
        page.wait_for("window.isOld === undefined && document.readyState === 'complete'")
    else:
        person.go(link(RESOURCES))
        person.go(f"#result_list a[href*='{dentist['id']}']")
    person.click("[data-add=closed_on]")
    person.choose("[name=dates-0-date]", christmas)
    person.click("[data-add=extra_hours]")
    person.choose("[name=dates-1-date]", saturday.isoformat())
    person.fill("[name=dates-1-hours]", "10-14")
    page.wait_for(
        "document.querySelector('.rules-exceptions').textContent.includes('open 10:00 to 14:00')"
    )
    person.page.save_screenshot(f"dentist-{width}-{scheme}")
    person.go("[name=_save]")

    assert person.actions <= 8
    saved = office.get(f"/resources/{dentist['id']}?include=availability_constraints").data
    assert saved["availability_constraints"] == [
        *hours,
        {
            "block_period": {
                "start": f"{christmas} 00:00:00",
                "end": f"{christmas[:-2]}25 00:00:00",
            }
        },
        {"open_period": {"start": f"{saturday} 10:00:00", "end": f"{saturday} 14:00:00"}},
    ]


@pytest.mark.deep
def test_a_question_and_a_reminder_take_four_steps_each(
    by_keyboard: Any, office: Tenant, ada: Any, editor: Account
) -> None:
    project = office.make_project(ada["id"])
    first, second = by_keyboard(editor), by_keyboard(editor)

    first.go(link(PROJECTS))
    first.go(f"#result_list a[href*='{project['id']}']")
    first.fill("[data-blank] [name=questions-title]", "Allergies")
    first.go("[name=_save]")
    second.go(link(PROJECTS))
    second.go(f"#result_list a[href*='{project['id']}']")
    # The preview moves what lies below it, also between press and release.
    second.page.wait_for("document.querySelector('.rules-picture').dataset.drawn >= 1")
    second.click("#event_notifications-group a.add-row")
    second.go("[name=_save]")

    found = office.get(f"/projects/{project['id']}").data
    assert (first.actions, second.actions) == (4, 4)
    question = {"title": "Allergies", "format": "string", "required": False, "position": 2}
    assert found["customer_fields"] == {"allergies": question}
    assert found["event_notifications"] == [
        {
            "type": "email",
            "settings": {"recipient": "customer"},
            "when": {"type": "before", "unit": "hours", "time": 24},
        }
    ]


def test_mails_are_turned_off_in_three_steps(
    by_keyboard: Any, office: Tenant, editor: Account
) -> None:
    person = by_keyboard(editor)

    person.go(link(f"/admin/apps_config/app/{office.app.pk}/change/"))
    person.click("#id_send_emails")
    person.go("[name=_save]")

    assert person.actions == 3
    assert office.get("/app").data["settings"]["disable_emails"] is True


def test_martys_next_booking_takes_two_steps(
    by_keyboard: Any, office: Tenant, ada: Any, editor: Account
) -> None:
    """Though a later booking was made after it."""
    monday = timezone.now().date() + timedelta(days=14 - timezone.now().weekday())
    for day in (monday, monday + timedelta(days=7)):
        times = {"start": f"{day} 09:00:00", "end": f"{day} 09:30:00"}
        assert office.book(resource_id=ada["id"], **times).status == 201
    person = by_keyboard(editor)

    person.fill("#find-booking", "Marty")
    person.page.press("Enter")
    person.page.wait_for("location.pathname === '/admin/bookings/booking/'")
    person.go("#result_list a[href*='/change/']")

    assert person.actions == 2
    assert f"{monday:%a} {monday.day} {monday:%b %Y}, 09:00" in person.page.texts("h1")[-1]


def test_a_booking_of_today_goes_to_another_dentist_in_three_steps(
    by_keyboard: Any, office: Tenant, editor: Account
) -> None:
    is_evening = timezone.now().hour >= 20  # in a zone where the day goes on
    place = "Pacific/Honolulu" if is_evening else "UTC"
    office.put(f"/apps/{office.app.slug}", {"settings": {"default_timezone": place}})
    rules = {"timezone": place, "availability_constraints": OPEN}
    bob, grace = (office.make_resource(name, **rules) for name in ("Bob", "Grace"))
    start = (timezone.now() + timedelta(hours=2)).replace(minute=0, second=0, microsecond=0)
    times = {"start": start.isoformat(), "end": (start + timedelta(minutes=30)).isoformat()}
    assert office.book(resource_id=bob["id"], **times).status == 201
    person = by_keyboard(editor)

    person.go(".desk-entry a")
    person.page.wait_for(f"!{SHOW_TIMES}.hidden")
    person.choose_next("#resource")
    person.page.wait_for("document.querySelectorAll('#free-times button').length === 12")
    person.click("#free-times button")
    person.page.wait_for("document.body?.innerText.includes('with Grace.')")

    assert person.actions == 3
    assert str(Booking.objects.get().resource_id) == grace["id"]


def test_tags_are_shown_as_chips(
    visit: Callable[..., Visit], office: Tenant, editor: Account
) -> None:
    ada = office.make_resource("Ada", timezone="Europe/Berlin", tags=["x-ray"])
    person = KeyboardPerson(visit(editor, f"{RESOURCES}{ada['id']}/change/"))
    page = person.page

    person.fill("#id_tags_new", "late")
    page.press("Enter")
    page.type("evening")
    page.press("Enter")
    shown = page.texts(".office-tag")
    page.evaluate("document.querySelector('.office-tag button').focus()")
    label = page.evaluate("document.activeElement.ariaLabel")
    page.press("Enter")
    person.go("[name=_save]")

    assert (shown, label) == (["x-ray\n✕", "late\n✕", "evening\n✕"], "Remove x-ray")
    assert office.get(f"/resources/{ada['id']}").data["tags"] == ["late", "evening"]


def test_resources_and_questions_are_ordered_by_arrows(
    visit: Callable[..., Visit], office: Tenant, ada: Any, bob: Any, editor: Account
) -> None:
    questions = {"first": {"title": "First"}, "second": {"title": "Second"}}
    project = office.make_project(ada["id"], bob["id"], customer_fields=questions)
    person = KeyboardPerson(visit(editor, f"{PROJECTS}{project['id']}/change/"))

    person.click("#project_resources-group tbody.form-group:not(.empty-form) [aria-label$=down]")
    person.reach("[data-row]:has([value=First]) [aria-label='Move this question down']")
    person.page.press("Enter")
    person.go("[name=_save]")

    found = office.get(f"/projects/{project['id']}").data
    places = {name: field["position"] for name, field in found["customer_fields"].items()}
    names = [
        row.resource.name
        for row in Project.objects.get().project_resources.order_by("position", "id")
    ]
    assert names == ["Bob", "Ada"]
    assert places["second"] < places["first"]


def test_resources_are_dragged_into_order(
    visit: Callable[..., Visit], office: Tenant, ada: Any, bob: Any, editor: Account
) -> None:
    """The API assigns the first free resource in this order."""
    in_order = {"mode": "roundrobin_prioritized"}
    project = office.make_project(ada["id"], bob["id"], availability=in_order)
    opened = visit(editor, f"{PROJECTS}{project['id']}/change/")
    person, page = Person(opened), opened.page
    rows = "#project_resources-group tbody.form-group:not(.empty-form)"
    handle = "td .cursor-move"
    page.wait_for(f"!!document.querySelector('{rows} .rule-move')")
    page.evaluate("document.querySelector('#part-who').scrollIntoView({behavior: 'instant'})")
    first, second = (page.box(f"{rows}:nth-of-type({place}) {handle}") for place in (1, 2))

    page.drag(middle_of(first), (middle_of(second)[0], second["y"] + second["height"]))
    page.wait_for(f"document.querySelector('{rows}').textContent.includes('Bob')")
    person.go("[name=_save]")

    found = Project.objects.get().project_resources.order_by("position", "id")
    now = timezone.now()
    monday = (now + timedelta(days=7 - now.weekday())).date()
    slot = {"start": f"{monday} 10:00:00", "end": f"{monday} 11:00:00"}
    booked = office.book(project_id=project["id"], **slot)
    assert [row.resource.name for row in found] == ["Bob", "Ada"]
    assert booked.data["resource_id"] == bob["id"]


def middle_of(box: dict[str, float]) -> tuple[float, float]:
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_json_is_checked_during_input(
    visit: Callable[..., Visit], office: Tenant, ada: Any, editor: Account
) -> None:
    project = office.make_project(ada["id"])
    page = visit(editor, f"{PROJECTS}{project['id']}/change/").page
    closed = page.evaluate("document.querySelector('#id_meta').checkVisibility()")

    page.evaluate("document.querySelector('#part-advanced details').open = true")
    page.evaluate("document.querySelector('#id_meta').select()")
    page.type('{"a": 1,\n "b" 2}')
    page.wait_for(
        "document.querySelector('#id_meta_fault').textContent.includes('line 2 column 6')"
    )
    page.evaluate("document.querySelector('#id_meta').select()")
    page.type('{"a": 1}')
    page.wait_for("document.querySelector('#id_meta_fault').textContent === ''")

    assert closed is False


# --- Classes --------------------------------------------------------------------------------------
KIND = "[name=graph][value=group_customer]"


@pytest.mark.parametrize("way", ["mouse", "keyboard"])
def test_a_class_of_twelve_is_on_the_web_in_six_clicks_and_four_fields(
    at_today: Any, by_keyboard: Any, office: Tenant, editor: Account, ada: Any, bob: Any, way: str
) -> None:
    """Every Monday at six until the end of the year."""
    is_keyboard = way == "keyboard"
    person = (by_keyboard if is_keyboard else at_today)(editor, width=1280)
    person.go(link("/admin/availability/project/"))
    person.go("a[href$='/project/add/']")
    person.fill("[name=name]", "Yoga")
    hidden = person.page.evaluate("document.querySelector('[name=seats]').checkVisibility()")
    if is_keyboard:
        choose_radio(person, KIND)
    else:
        person.click(KIND)
    person.fill("[name=seats]", "12")
    send_value(person, "first_date", "2030-11-04T18:00")
    person.choose("[name=repeat]", "weekly")
    send_value(person, "until", "2030-12-31")
    person.click(f"[name=resources][value='{ada['id']}']")
    person.go("[name=_save]")

    assert hidden is False
    assert person.actions == 6 + 4
    project = Project.objects.get()
    assert [project.booking["graph"], project.is_published] == ["group_customer", True]
    dates = Booking.objects.filter(project=project).order_by("event__start")
    assert {(row.max_seats, row.resource.name) for row in dates} == {(12, "Ada")}
    assert [f"{row.event.start:%m-%d %H:%M}" for row in dates] == [
        *("11-04 17:00", "11-11 17:00", "11-18 17:00", "11-25 17:00", "12-02 17:00"),
        *("12-09 17:00", "12-16 17:00", "12-23 17:00", "12-30 17:00"),
    ]


def choose_radio(person: KeyboardPerson, selector: str) -> None:
    """A group of radio buttons is one stop; the arrows choose."""
    person.actions += 1
    person.page.tab_to("[name=graph]", most=MAX_TABS)
    for _ in range(10):
        if person.page.evaluate(f"document.querySelector({selector!r}).checked"):
            return
        person.page.press("ArrowDown")
    raise AssertionError(selector)


@pytest.fixture
def yoga(office: Tenant, ada: Any) -> Any:
    """A class in ten hours, with two participants."""
    booking = {"graph": "group_customer"}
    project = office.make_project(ada["id"], name="Yoga", booking=booking)
    start = (timezone.now() + timedelta(hours=10)).replace(minute=0, second=0, microsecond=0)
    group = office.book(
        graph="group_owner",
        project_id=project["id"],
        start=start.isoformat(),
        end=(start + timedelta(hours=1)).isoformat(),
        settings={"max_seats": 12, "enforce_availability": False},
    ).data
    for name in ("Ann", "Bob"):
        seat = {"graph": "group_customer", "related": {"owner_booking_id": group["id"]}}
        customer = {"name": name, "email": f"{name}@example.com", "phone": "030 1234567"}
        assert office.book(project_id=project["id"], customer=customer, **seat).status == 201
    return group | {"project_id": project["id"]}


@pytest.mark.parametrize(("width", "scheme"), viewports(only="narrow"))
def test_pages_of_a_class_are_accessible(
    visit: Callable[..., Visit], editor: Account, yoga: Any, width: int, scheme: str
) -> None:
    path = f"/admin/bookings/booking/{yoga['id']}/change/"
    opened = visit(editor, path, width=width, height=1600, scheme=scheme)
    faults = []
    for name, path in {
        "booking": f"/admin/bookings/booking/{yoga['id']}/change/",
        "add": f"/admin/bookings/booking/{yoga['id']}/add/",
        "message": f"/admin/bookings/booking/{yoga['id']}/message/",
        "print": f"/admin/bookings/booking/{yoga['id']}/print/",
        "dates": f"{PROJECTS}{yoga['project_id']}/dates/",
        "project": f"{PROJECTS}{yoga['project_id']}/change/",
    }.items():
        opened.go(path)
        opened.page.save_screenshot(f"class-{name}-{width}-{scheme}")
        found = find_faults(opened.page, load_axe())
        faults += [(name, fault) for fault in found]
        wide = opened.page.evaluate("document.documentElement.scrollWidth")
        faults += [(name, f"{wide} px wide")] if wide > width else []

    assert faults == []


def test_a_message_to_a_class_takes_three_clicks_and_one_text(
    at_today: Any, editor: Account, yoga: Any
) -> None:
    person = at_today(editor, width=1280)
    person.go(f"a[href*='{yoga['id']}']")
    person.go(f"a[href$='{yoga['id']}/message/']")
    person.fill("[name=message]", "Room 2 today.")
    person.go("#class-message [name=send]")
    carry_out_due(now=timezone.now() + timedelta(seconds=11))

    assert person.actions == 3 + 1
    sent = Delivery.objects.filter(kind="message").values_list("content__message", flat=True)
    assert list(sent) == ["Room 2 today."] * 2


# --- Every page of ours ---------------------------------------------------------------------------
def pages_of(office: Tenant) -> dict[str, str]:
    """A page of each kind, with something to show."""
    rules = [{"allow_weekdays": {}}, {"block_period": {"start": "2030-01-01", "end": "2030-01-02"}}]
    ada = office.make_resource(
        "Ada", timezone="Europe/Berlin", availability_constraints=rules, tags=["x-ray"]
    )
    project = office.make_project(
        ada["id"],
        booking={"graph": "confirm_decline"},
        customer_fields={"room": {"title": "Room", "enum": ["Red", "Blue"]}},
        meta={"a": {"b": [1]}},
        availability_constraints=rules[:1],
    )
    start = (timezone.now() + timedelta(days=2)).replace(hour=9, minute=0, second=0, microsecond=0)
    booking = office.book(
        resource_id=ada["id"],
        graph="confirm_decline",
        start=start.isoformat(),
        end=(start + timedelta(hours=1)).isoformat(),
        meta={"deep": {"a": [1]}, "shallow": 3},
    ).data
    return {
        "resource-new": f"{RESOURCES}add/",
        "resource": f"{RESOURCES}{ada['id']}/change/",
        "project-new": f"{PROJECTS}add/",
        "project": f"{PROJECTS}{project['id']}/change/",
        "booking": f"/admin/bookings/booking/{booking['id']}/change/",
    }


def raw_names(page: Page) -> list[str]:
    """JSON, raw names and ids in headings, as a person reads them."""
    text = page.evaluate(
        f"[...document.querySelectorAll({TYPED!r})].filter(one => one.checkVisibility())"
        ".map(one => one.value).join(' ') + ' '"
        " + document.querySelector('#content').innerText"
    )
    headings = " ".join(page.texts("h1, h2, h3, title"))
    faults = [RAW.search(text), JSON.search(text), UUID.search(headings)]
    return [match[0] for match in faults if match]


@pytest.mark.parametrize(
    "role",
    [
        "viewer",
        pytest.param("owner", marks=pytest.mark.deep),
        pytest.param("superuser", marks=pytest.mark.deep),
    ],
)
def test_pages_show_no_json_ids_or_raw_names(
    visit: Callable[..., Visit], office: Tenant, role: str
) -> None:
    """An editor's are read in the next test."""
    paths = pages_of(office)
    if role == "superuser":
        person = Account.objects.create_superuser("staff@example.com", "x" * 12)
    else:
        person = member_of(office, role)

    shown, found = visit(person, "/admin/"), {}
    for name, path in paths.items():
        if role == "viewer" and name.endswith("-new"):
            continue
        shown.go(path)
        found[name] = raw_names(shown.page)
        shown.check()

    assert found == {name: [] for name in found}


# A page to add has the fields of the page to change.
@pytest.mark.parametrize("kind", ["rows", pytest.param("new", marks=pytest.mark.deep)])
@pytest.mark.parametrize(("width", "scheme"), viewports(only="narrow"))
def test_pages_are_accessible(
    visit: Callable[..., Visit],
    office: Tenant,
    editor: Account,
    width: int,
    scheme: str,
    kind: str,
) -> None:
    axe, found = load_axe(), {}
    shown = visit(editor, "/admin/", width=width, height=5200, scheme=scheme)
    for name, path in pages_of(office).items():
        if name.endswith("-new") is not (kind == "new"):
            continue
        shown.go(path)
        shown.page.save_screenshot(f"forms-{name}-{width}-{scheme}")
        faults = find_faults(shown.page, axe, "document.getElementById('content')")
        found[name] = (faults, raw_names(shown.page))
        shown.check()

    assert found == {name: ([], []) for name in found}


@pytest.mark.parametrize(("width", "scheme"), viewports(only="wide"))
def test_hours_of_five_people_take_six_steps(
    by_keyboard: Callable[..., Person], office: Tenant, editor: Account, width: int, scheme: str
) -> None:
    for name in ("Ada", "Bea", "Cleo", "Dora", "Eve"):
        office.make_resource(name, timezone="Europe/Berlin")
    person = by_keyboard(editor, width=width, scheme=scheme)

    if width < 600:  # the menu is behind a button
        person.page.evaluate(f"location.href = '{RESOURCES}'")
        person.page.wait_for(
            f"location.pathname === '{RESOURCES}' && document.readyState === 'complete'"
        )
        person.page.evaluate("window.isOld = true; location.href = 'several/'")
        person.page.wait_for("window.isOld === undefined && document.readyState === 'complete'")
    else:
        person.go(link(RESOURCES))
        person.go("a[href$='/change-several/']")
    person.fill("#id_hours_0", LUNCH)
    person.click("[data-copy-day]")
    person.page.save_screenshot(f"bulk-edit-{width}-{scheme}")
    faults = find_faults(person.page, load_axe())
    person.go("#bulk-edit .office-primary")
    person.page.save_screenshot(f"bulk-edit-preview-{width}-{scheme}")
    person.go(".office-card .office-primary")

    assert person.actions <= 6
    assert faults == []
    rows = [(row.timezone, len(row.availability_constraints)) for row in Resource.objects.all()]
    assert rows == [("Europe/Berlin", 10)] * 5


def test_bulk_edit_opened_from_a_filtered_list_has_its_resources_chosen(
    visit: Callable[..., Visit], office: Tenant, editor: Account
) -> None:
    made = {name: office.make_resource(name)["id"] for name in ("Ada", "Ada Byron", "Bea")}
    person = Person(visit(editor, f"{RESOURCES}?q=ada"))
    shown = person.page.evaluate("document.querySelectorAll('#result_list tbody tr').length")

    person.go("a[href*='/change-several/']")
    chosen = person.page.evaluate(
        "[...document.querySelectorAll('[name=resources]:checked')].map(one => one.value)"
    )
    person.fill("#id_hours_0", LUNCH)
    person.go("#bulk-edit .office-primary")
    person.go(".office-card .office-primary")

    assert shown == 2
    assert chosen == [made["Ada"], made["Ada Byron"]]
    changed = Resource.objects.exclude(availability_constraints=[]).order_by("name")
    assert [row.name for row in changed] == ["Ada", "Ada Byron"]
