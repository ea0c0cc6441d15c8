"""The ten businesses of the guide, executed as they stand there."""

from typing import Any

import pytest

from availability.models import Event
from bookings.models import Booking
from tests.guide import CHAPTERS, block_of_guide
from tests.world import Caller, Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

BUSINESSES = (
    *("clinic", "gym", "rental", "interviews", "tutors", "restaurant", "home", "concert"),
    *("telehealth", "workshop"),
)
MAX_LINES = 25


class Story:
    """Executes a recipe; its names are keys."""

    def __init__(self, tenant: Tenant) -> None:
        tenant.set_public_limits()
        self.tenant = tenant
        self.names: dict[str, Any] = {
            "call": self._with(tenant),
            "page": self._with(tenant.widget()),
        }

    @staticmethod
    def _with(caller: Caller) -> Any:
        def call(method: str, path: str, body: Any = None) -> Any:
            answer = caller.call(method, path, body)
            assert answer.status < 300, (method, path, answer.json)
            return answer.data

        return call

    def execute(self, name: str) -> dict[str, Any]:
        for block in ("python business", f"python business-{name}"):
            exec(block_of_guide(block), self.names)
        return self.names


@pytest.fixture
def story(tenant: Tenant) -> Story:
    return Story(tenant)


def busy() -> list[tuple[str, str]]:
    rows = Event.objects.filter(busy=True).order_by("start", "resource__name")
    return [(f"{row.start:%d %H:%M}-{row.end:%d %H:%M}", row.resource.name) for row in rows]


@pytest.mark.parametrize("name", BUSINESSES)
def test_a_business_takes_few_lines(name: str) -> None:
    lines = [line for line in block_of_guide(f"python business-{name}").splitlines() if line]

    assert len(lines) <= MAX_LINES


def test_there_are_ten_businesses() -> None:
    assert CHAPTERS["businesses"].count("```python business-") == len(BUSINESSES) == 10


def test_clinic(story: Story) -> None:
    names = story.execute("clinic")

    assert [(step["name"], step["start"][11:16]) for step in names["steps"]] == [
        ("cleaning", "14:00"),
        ("check-up", "14:30"),
    ]
    assert [step["resources"][0]["name"] for step in names["steps"]] == [
        "Hanna",
        "Ben",
    ]
    assert busy() == []


def test_gym(story: Story) -> None:
    names = story.execute("gym")

    assert [group["full"] for group in names["full"]] == [True]
    assert [group["attributes"]["group_booking"] for group in names["free"]] == [
        {"max_seats": 12, "current_seats": 1}
    ]
    assert busy() == [("24 18:00-24 19:00", "Anna")]


def test_rental(story: Story) -> None:
    names = story.execute("rental")

    first = names["first"]
    assert (first["start"][8:16], first["end"][8:16]) == ("24T09:00", "25T09:00")
    assert (first["remaining"], names["left"]) == (10, 8)
    assert busy() == []


def test_interviews(story: Story) -> None:
    names = story.execute("interviews")

    assert names["names"] == [
        ["Maria", "Engineer 1", "Engineer 2"],
        ["Maria", "Engineer 3", "Engineer 4"],
    ]
    assert [name for _, name in busy()] == ["Engineer 3", "Engineer 4", "Maria"]


def test_tutors(story: Story) -> None:
    names = story.execute("tutors")

    assert {each["name"] for slot in names["slots"] for each in slot["resources"]} == {"Ada"}
    assert {slot["start"][11:16] for slot in names["slots"]} == {"14:00", "15:00", "16:00", "17:00"}
    assert busy() == []


def test_restaurant(story: Story) -> None:
    story.execute("restaurant")

    assert busy() == [
        ("24 18:00-24 20:00", "Table for 2"),
        ("24 18:00-24 20:00", "Table for 4"),
        ("24 21:00-24 23:00", "Table for 4"),
    ]


def test_home(story: Story) -> None:
    names = story.execute("home")

    assert [slot["start"][11:16] for slot in names["slots"]] == ["10:00"]
    assert busy() == [("24 08:00-24 10:00", "North")] * 2


def test_concert(story: Story) -> None:
    names = story.execute("concert")

    assert (names["taken"]["max_seats"], names["taken"]["current_seats"]) == (150, 3)
    assert [booking.quantity for booking in Booking.objects.exclude(owner_booking=None)] == [3]
    assert busy() == [("24 20:00-24 23:00", "Hall")]


def test_telehealth(story: Story) -> None:
    names = story.execute("telehealth")

    assert names["link"] == f"https://video.example.com/{names['booking']}"
    assert busy() == []


def test_workshop(story: Story) -> None:
    story.execute("workshop")

    assert busy() == [
        ("24 10:00-24 12:00", "Mia"),
        ("24 11:00-24 12:00", "Bay 1"),
        ("24 15:00-24 17:00", "Mia"),
        ("24 16:00-24 17:00", "Bay 1"),
    ]
