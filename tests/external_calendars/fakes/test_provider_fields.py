"""The files of the fakes are what their script makes of the published packages."""

import pytest

from scripts.provider_fields import FILES, FOLDER, described_facts, file_text


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
