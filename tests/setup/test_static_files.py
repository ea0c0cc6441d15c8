"""Static files as a service that is not in debug mode finds them: in one scan when it starts."""

from django.contrib.staticfiles.finders import get_finders
from django.test import Client, override_settings


def test_every_static_file_is_found_by_the_scan_and_served():
    expected = {f"/static/{path}" for finder in get_finders() for path, _ in finder.list([])}

    with override_settings(WHITENOISE_AUTOREFRESH=False):
        client = Client()
        answers = {url: client.get(url) for url in sorted(expected)}

    assert len(expected) > 100
    assert {url: answer.status_code for url, answer in answers.items()} == dict.fromkeys(
        expected, 200
    )
    assert all(b"".join(answer.streaming_content) for answer in answers.values())
