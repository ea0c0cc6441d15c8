"""Images that staff upload, made small and without metadata."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import NamedTuple

from PIL import Image, ImageFile, ImageOps

from common.errors import Invalid

MAX_FILE = 10_000_000  # bytes
MAX_PIXELS = 25_000_000  # four bytes of memory each
# No SVG, which can contain scripts.
FORMATS = ("PNG", "JPEG", "WEBP")
PICTURE_SIDE = 136  # pixels: twice the largest size on a page
LOGO_SIZE = (480, 160)  # pixels: a page shows half of it
MAX_LOGO = 30_000  # bytes: part of a page's first load
JPEG_QUALITY = 85


class SmallImage(NamedTuple):
    content: bytes
    type: str  # the media type


def square_picture(content: bytes, *, path: str) -> SmallImage:
    """Return the middle of a PNG, JPEG or WebP image as a square WebP. Raises Invalid at `path`."""
    with _open_image(content, path) as image:
        # Reads a large JPEG at a fraction of its size.
        image.draft("RGB", (2 * PICTURE_SIDE, 2 * PICTURE_SIDE))
        square = ImageOps.fit(_upright(image), (PICTURE_SIDE, PICTURE_SIDE))
        return SmallImage(_encode(square, "WEBP"), "image/webp")


def small_logo(content: bytes, *, path: str) -> SmallImage:
    """Return a PNG, JPEG or WebP image within LOGO_SIZE. Raises Invalid at `path`.

    It becomes a PNG, or a JPEG on white if a PNG would be too large: e-mail programs show no WebP.
    """
    with _open_image(content, path) as image:
        logo = _upright(image)
        logo.thumbnail(LOGO_SIZE)
        drawing = _encode(logo, "PNG")
        if len(drawing) <= MAX_LOGO:
            return SmallImage(drawing, "image/png")
        paper = Image.new("RGB", logo.size, "white")
        paper.paste(logo, mask=logo.getchannel("A"))
        return SmallImage(_encode(paper, "JPEG"), "image/jpeg")


@contextmanager
def _open_image(content: bytes, path: str) -> Iterator[ImageFile.ImageFile]:
    if len(content) > MAX_FILE:
        raise Invalid.at(path, f"Must be at most {MAX_FILE // 1_000_000} MB.")
    try:
        with Image.open(BytesIO(content), formats=FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise _too_many_pixels(path)
            yield image
    except Invalid:
        raise
    except Image.DecompressionBombError as error:
        raise _too_many_pixels(path) from error
    # Pillow raises errors of many kinds for a damaged file, and names no common base.
    except Exception as error:
        raise Invalid.at(path, "Must be a PNG, JPEG or WebP image.") from error


def _too_many_pixels(path: str) -> Invalid:
    return Invalid.at(path, f"Must have at most {MAX_PIXELS // 1_000_000} megapixels.")


def _upright(image: Image.Image) -> Image.Image:
    """Return the image as RGBA, turned as its camera was held."""
    return ImageOps.exif_transpose(image).convert("RGBA")


def _encode(image: Image.Image, kind: str) -> bytes:
    """Return the file; only the pixels are stored, so neither place nor date of a photo."""
    encoded = BytesIO()
    image.save(encoded, kind, quality=JPEG_QUALITY, optimize=True)
    return encoded.getvalue()
