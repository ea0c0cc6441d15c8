"""Uploaded images are made small; what is no image, or too large, is refused."""

import random
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO

import pytest
from PIL import Image

from common.errors import Invalid
from common.images import MAX_FILE, SmallImage, small_logo, square_picture
from tests.images import JPEG, PNG, SVG, WEBP, image_file, png_that_claims

NOISE = random.Random(7).randbytes(800 * 600 * 3)
# A place in Berlin.
PLACE = {1: "N", 2: (52.0, 31.0, 0.0), 3: "E", 4: (13.0, 24.0, 0.0)}
ORIENTATION, GPS = 0x0112, 0x8825
Shrink = Callable[..., SmallImage]
SHRINKS = pytest.mark.parametrize("shrink", [square_picture, small_logo])


def read(image: SmallImage) -> Image.Image:
    return Image.open(BytesIO(image.content))


def photo() -> bytes:
    """Upper half red, lower half blue, taken with the camera turned by 90 degrees."""
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    exif[GPS] = PLACE
    upright = Image.new("RGB", (100, 200), "red")
    upright.paste("blue", (0, 100, 100, 200))
    content = BytesIO()
    upright.transpose(Image.Transpose.ROTATE_90).save(content, "JPEG", quality=95, exif=exif)
    return content.getvalue()


@pytest.mark.parametrize("content", [PNG, JPEG, WEBP])
def test_a_picture_is_a_square_and_a_logo_keeps_its_shape(content: bytes) -> None:
    picture, logo = square_picture(content, path="x"), small_logo(content, path="x")

    assert (picture.type, read(picture).format, read(picture).size) == (
        *("image/webp", "WEBP"),
        (136, 136),
    )
    assert (logo.type, read(logo).format, read(logo).size) == ("image/png", "PNG", (40, 30))


def test_a_logo_of_many_colours_becomes_a_small_jpeg_on_white() -> None:
    noise = Image.frombytes("RGB", (800, 600), NOISE)
    noise.putalpha(Image.new("L", (800, 600), 0))
    content = BytesIO()
    noise.save(content, "PNG")

    logo = small_logo(image_file(size=(800, 600), pixels=NOISE), path="x")
    clear = small_logo(content.getvalue(), path="x")

    assert (logo.type, read(logo).size) == ("image/jpeg", (213, 160))
    assert len(logo.content) < 30_000
    assert read(clear).convert("RGB").getpixel((100, 80)) in [(255, 255, 255), (0, 0, 0)]


@SHRINKS
def test_photo_is_rotated_and_metadata_removed(shrink: Shrink) -> None:
    given = Image.open(BytesIO(photo()))
    image = read(shrink(photo(), path="x")).convert("RGB")

    assert given.getexif().get_ifd(GPS)
    assert not image.getexif()
    assert "exif" not in image.info
    middle = image.width // 2
    upper, lower = (image.getpixel((middle, image.height * part // 4)) for part in (1, 3))
    assert isinstance(upper, tuple)
    assert isinstance(lower, tuple)
    assert (upper[0] > 200, upper[2] < 60) == (True, True)
    assert (lower[0] < 60, lower[2] > 200) == (True, True)


@SHRINKS
@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (SVG, "Must be a PNG, JPEG or WebP image."),
        (b"", "Must be a PNG, JPEG or WebP image."),
        (b"\0" * 100, "Must be a PNG, JPEG or WebP image."),
        (image_file("GIF"), "Must be a PNG, JPEG or WebP image."),
        (JPEG[: len(JPEG) // 2], "Must be a PNG, JPEG or WebP image."),
        (PNG[:40], "Must be a PNG, JPEG or WebP image."),
        (PNG + b"\0" * MAX_FILE, "Must be at most 10 MB."),
        (png_that_claims(5001, 5000), "Must have at most 25 megapixels."),
        (png_that_claims(65535, 65535), "Must have at most 25 megapixels."),
    ],
)
def test_wrong_files_are_refused(shrink: Shrink, content: bytes, fault: str) -> None:
    with pytest.raises(Invalid) as refusal:
        shrink(content, path="file")

    assert refusal.value.fields["errors"] == {"file": [fault]}


@SHRINKS
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "I;16"])
def test_every_kind_of_png_is_read(shrink: Shrink, mode: str) -> None:
    image = Image.new(mode, (9, 9))
    content = BytesIO()
    image.save(content, "PNG")

    assert read(shrink(content.getvalue(), path="x")).size in [(136, 136), (9, 9)]


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@SHRINKS
@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_file_is_read_or_refused(shrink: Shrink, seed: int) -> None:
    chance = random.Random(seed)
    files = [PNG, JPEG, WEBP, photo()]
    images = []
    for _ in range(200):
        content = bytearray(chance.choice(files))
        for _ in range(chance.randint(1, 6)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        with suppress(Invalid):
            images.append(shrink(bytes(content), path="file"))

    assert 0 < len(images) < 200
    assert {read(image).format for image in images} <= {"PNG", "JPEG", "WEBP"}
