"""Pictures of the resources that customers choose from: upload, page, removal."""

import hashlib
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps_config.models import Membership
from availability.models import Project, Resource, ResourcePicture
from availability.services import store_picture
from common.images import SmallImage, square_picture
from tests.booking_pages.test_book_page import Shown, make_page
from tests.images import OTHER_PICTURE, PICTURE, PNG, SVG
from tests.office.staff import form_of, member
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")


def path_of(resource_id: str, picture: SmallImage) -> str:
    return f"/book/pictures/{resource_id}/{hashlib.sha256(picture.content).hexdigest()}"


def people_to_choose(page: Shown) -> list[tuple[str, str]]:
    """(initials or path of the picture, name) of each person to choose."""
    people = re.findall(r'<a class="person".*?</a>', page.html, re.S)
    faces = []
    for person in people:
        picture = re.search(r'<img class="picture" src="([^"]*)" alt=""', person)
        words = re.findall(r"<span[^>]*>(.*?)</span>", person)
        faces.append((picture[1] if picture else words[0], words[-1]))
    return faces


@pytest.fixture
def people(tenant: Tenant) -> tuple[str, list[Resource]]:
    """The page of a project with Ada and Bo Lind, and their rows."""
    bo = tenant.make_resource("Bo Lind")
    path = make_page(tenant, settings={"choose_resource": True})
    project = Project.objects.get(app=tenant.app)
    ada_id = Resource.objects.get(app=tenant.app, name="Ada").id
    ids = [str(ada_id), bo["id"]]
    tenant.put(f"/projects/{project.id}", {"resources": ids})
    return path, [Resource.objects.get(id=each) for each in ids]


def test_page_shows_pictures_or_initials(people: tuple[str, list[Resource]]) -> None:
    path, (ada, bo) = people

    plain = people_to_choose(Shown(path))
    store_picture(bo, PICTURE)
    pictured = people_to_choose(Shown(path))
    store_picture(bo, OTHER_PICTURE)
    replaced = people_to_choose(Shown(path))
    store_picture(bo, None)

    assert plain == [("", "Anyone"), ("A", ada.name), ("BL", "Bo Lind")]
    assert pictured == [*plain[:2], (path_of(str(bo.id), PICTURE), "Bo Lind")]
    assert replaced == [*plain[:2], (path_of(str(bo.id), OTHER_PICTURE), "Bo Lind")]
    assert people_to_choose(Shown(path)) == plain


def test_picture_is_served_with_its_type(
    make_tenant: Callable[..., Tenant],
) -> None:
    one = make_tenant()
    ada, bo = (Resource.objects.get(id=one.make_resource(name)["id"]) for name in ("Ada", "Bo"))
    store_picture(ada, PICTURE)

    answer = Client().get(path_of(str(ada.id), PICTURE))
    others = [
        Client().get(path).status_code
        for path in (
            path_of(str(bo.id), PICTURE),
            path_of(str(ada.id), OTHER_PICTURE),
            path_of("x", PICTURE),
            path_of(str(ada.id).upper() + "%00", PICTURE),
        )
    ]

    assert (answer.status_code, answer.content) == (200, PICTURE.content)
    assert answer["Content-Type"] == "image/webp"
    assert answer["Cache-Control"] == "public, max-age=31536000, immutable"
    assert answer["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert others == [404] * 4


def test_a_deleted_resource_has_no_picture(tenant: Tenant) -> None:
    ada = tenant.make_resource("Ada")
    store_picture(Resource.objects.get(id=ada["id"]), PICTURE)

    tenant.call("DELETE", f"/resources/{ada['id']}")

    assert Client().get(path_of(ada["id"], PICTURE)).status_code == 404
    assert not ResourcePicture.objects.exists()


def test_an_archived_app_shows_no_picture(tenant: Tenant) -> None:
    ada = tenant.make_resource("Ada")
    store_picture(Resource.objects.get(id=ada["id"]), PICTURE)
    tenant.app.archived_at = tenant.app.created_at
    tenant.app.save()

    assert Client().get(path_of(ada["id"], PICTURE)).status_code == 404


# --- The back office ------------------------------------------------------------------------------
def test_resource_form_stores_and_removes_the_picture(tenant: Tenant) -> None:
    ada = tenant.make_resource("Ada", image="https://example.com/ada.png")
    editor = member(tenant.app, Membership.EDITOR)
    address = reverse("admin:availability_resource_change", args=[ada["id"]])
    small = square_picture(PNG, path="")
    image = f'<img src="{path_of(ada["id"], small)}" alt="Current picture"'

    def save(**given: Any) -> Any:
        return editor.post(address, form_of(editor, address) | given)

    before = "removes_picture" in editor.get(address).content.decode()
    wrong = save(picture_file=SimpleUploadedFile("x.png", SVG))
    nothing = ResourcePicture.objects.exists()
    saved = save(picture_file=SimpleUploadedFile("../x\0.svg", PNG))
    shown = editor.get(address).content.decode()
    renamed = save(name="Ada Berg")
    kept = ResourcePicture.objects.values_list("digest", "type").get()
    read_only = member(tenant.app, Membership.VIEWER).get(address).content.decode()
    removed = save(removes_picture="on")

    assert wrong.context["adminform"].form.errors == {
        "picture_file": ["Must be a PNG, JPEG or WebP image."]
    }
    assert not nothing
    assert [answer.status_code for answer in (saved, renamed, removed)] == [302, 302, 302]
    assert kept == (hashlib.sha256(small.content).hexdigest(), "image/webp")
    assert image in shown and image in read_only
    removal = [before, *("removes_picture" in page for page in (shown, read_only))]
    assert removal == [False, True, False]
    assert 'enctype="multipart/form-data"' in shown
    resource = tenant.get(f"/resources/{ada['id']}").data
    assert (resource["name"], resource["image"]) == ("Ada Berg", "https://example.com/ada.png")
    assert not ResourcePicture.objects.exists()
    assert image not in editor.get(address).content.decode()


def test_viewer_cannot_store_a_picture(tenant: Tenant) -> None:
    ada = tenant.make_resource("Ada")
    viewer = member(tenant.app, Membership.VIEWER)
    address = reverse("admin:availability_resource_change", args=[ada["id"]])

    answer = viewer.post(address, {"name": "Ada", "picture_file": SimpleUploadedFile("x", PNG)})

    assert (answer.status_code, ResourcePicture.objects.exists()) == (403, False)
