import pytest
from django.test import RequestFactory

from common.api.query import service_header
from common.errors import Malformed


@pytest.mark.parametrize(
    ("headers", "value"),
    [
        ({}, None),
        ({"Service-App": "salon"}, "salon"),
        ({"Timekit-App": "salon"}, "salon"),
        ({"Timekit-App": "other", "Service-App": "salon"}, "salon"),
        ({"Service-App": ""}, ""),
        ({"X-App": "salon"}, None),
    ],
)
def test_service_header(headers, value):
    request = RequestFactory().get("/", headers=headers)

    assert service_header(request, "App") == value


@pytest.mark.parametrize("value", ["a\0", "a\x1bb", "\x85"])
def test_control_characters_are_malformed(value):
    request = RequestFactory().get("/", headers={"Service-App": value})

    with pytest.raises(Malformed) as refusal:
        service_header(request, "App")

    assert refusal.value.message == "The header Service-App contains control characters."
