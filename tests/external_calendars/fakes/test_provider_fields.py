"""The files of the fakes are what their script makes of the published packages."""

import pytest

from scripts.provider_fields import (
    FILES,
    FOLDER,
    described_facts,
    file_text,
    graph_enum,
    graph_path,
    graph_type,
)


@pytest.mark.deep
@pytest.mark.parametrize("name", FILES)
def test_file_is_what_the_script_makes(name: str) -> None:
    assert (FOLDER / name).read_text() == file_text(FILES[name]())


def test_described_facts_are_values_and_read_only() -> None:
    status = 'Status. Possible values are:  \n- "confirmed" - The "x".\n- "tentative" - Perhaps. '
    mode = "Valid values are declineNone, meaning that; declineAll, meaning that all are declined."

    assert described_facts(status) == {"enum": ["confirmed", "tentative"]}
    assert described_facts(mode) == {"enum": ["declineAll", "declineNone"]}
    assert described_facts("Creation time. Read-only.") == {"readOnly": True}
    assert described_facts("Read-only, except when importing an event.") == {}
    assert described_facts('Some of the possible values are: \n- "notFound" - Not there.') == {}


def test_graph_facts_are_read_from_the_source_of_a_package() -> None:
    model = """
@dataclass
class Attendee(AttendeeBase, Parsable):
    def get_field_deserializers(self,) -> dict[str, Callable[[ParseNode], None]]:
        fields: dict[str, Callable[[Any], None]] = {
            "name": lambda n : setattr(self, 'name', n.get_str_value()),
            "phones": lambda n : setattr(self, 'phones', n.get_collection_of_object_values(Phone)),
            "notes": lambda n : setattr(self, 'notes', n.get_collection_of_primitive_values(str)),
            "type": lambda n : setattr(self, 'type', n.get_enum_value(AttendeeType)),
        }
"""
    enum = 'class AttendeeType(str, Enum):\n    B = "b",\n    UnknownFutureValue = '
    enum += '"unknownFutureValue",\n    A = "a",\n'
    builder = 'super().__init__(request_adapter, "{+baseurl}/users/{user%2Did}/calendars/'
    builder += '{calendar%2Did}/calendarView/delta()?endDateTime={endDateTime}{&%24top,%24select}"'
    builder += ", path_parameters)\n    RequestInformation(Method.GET, self.url_template)"

    assert graph_type(model) == (
        "attendee",
        {
            "base": "attendeeBase",
            "properties": {
                "name": "string",
                "phones": "[phone]",
                "notes": "[string]",
                "type": "attendeeType",
            },
        },
    )
    assert graph_enum(enum) == ("attendeeType", ["a", "b"])
    assert graph_path(builder) == (
        "/me/calendars/{calendar-id}/calendarView/delta",
        {"methods": ["GET"], "query": ["$select", "$top", "endDateTime"]},
    )
