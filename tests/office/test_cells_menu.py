"""The menu of the account leads to the back offices of the other cells (docs/scaling.md)."""

from typing import Any

from tests.office.conftest import Enter
from tests.world import Tenant

OTHER = ("Asia", "https://asia.example.com")


def links(page: str) -> list[str]:
    return [part for part in page.split('"') if part.endswith(".example.com/admin/")]


def test_menu_has_the_other_cells(tenant: Tenant, enter: Enter, settings: Any) -> None:
    settings.PUBLIC_URL = "https://eu.example.com"
    settings.CELLS = [("Europe", "https://eu.example.com"), OTHER]

    page = enter(tenant).get("/admin/").content.decode()

    assert links(page) == ["https://asia.example.com/admin/"]
    assert "Asia" in page


def test_menu_without_cells_has_no_links_to_others(tenant: Tenant, enter: Enter) -> None:
    page = enter(tenant).get("/admin/").content.decode()

    assert links(page) == []
