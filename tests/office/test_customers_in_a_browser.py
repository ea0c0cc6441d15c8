"""The list of customers on the screen of a laptop."""

import pytest
from django.conf import settings
from django.urls import reverse

from common.shipped_languages import shipped_languages
from tests.browser import Browser
from tests.office.conftest import Enter
from tests.world import Tenant

pytestmark = pytest.mark.django_db(transaction=True)


def test_all_columns_fit_in_each_language(
    browser: Browser, live_server: object, tenant: Tenant, enter: Enter
) -> None:
    """Also the column of the app, and moments of two digits each."""
    resource = tenant.make_resource("Ada")
    answer = tenant.book(
        resource_id=resource["id"],
        start="2030-12-25 10:30:00",
        end="2030-12-25 11:30:00",
    )
    assert answer.status == 201
    session = enter().cookies[settings.SESSION_COOKIE_NAME].value
    address = f"{live_server}{reverse('admin:bookings_appcustomer_changelist')}"
    page = browser.open(address, cookies={settings.SESSION_COOKIE_NAME: session})
    widths = {}
    for language in shipped_languages():
        page.send("Network.setCookie", name="office_language", value=language, url=address)
        page.send("Page.navigate", url=address)
        page.wait_for(
            f'document.documentElement.lang.toLowerCase() === "{language.lower()}"'
            ' && document.readyState === "complete" && document.querySelector("#result_list")'
        )
        widths[language] = page.evaluate(
            "(() => { let e = document.querySelector('#result_list');"
            " while (getComputedStyle(e).overflowX === 'visible') e = e.parentElement;"
            " return e.scrollWidth - e.clientWidth; })()"
        )

    assert widths == dict.fromkeys(shipped_languages(), 0)
