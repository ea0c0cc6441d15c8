"""Image files to upload."""

import struct
import zlib
from io import BytesIO
from typing import Any

from PIL import Image

from common.images import small_logo, square_picture


def image_file(
    kind: str = "PNG", size: tuple[int, int] = (40, 30), mode: str = "RGB", **options: Any
) -> bytes:
    """Black, unless `pixels` are given."""
    pixels = options.pop("pixels", None)
    image = Image.frombytes(mode, size, pixels) if pixels else Image.new(mode, size)
    content = BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


def png_that_claims(width: int, height: int) -> bytes:
    """The head of a PNG of that size, whose pixels are missing: no memory is needed to make it."""
    whole = image_file("PNG", mode="1")
    head = b"IHDR" + struct.pack(">II", width, height) + whole[24:29]
    return whole[:12] + head + struct.pack(">I", zlib.crc32(head)) + whole[33:]


PNG, JPEG, WEBP = (image_file(kind) for kind in ("PNG", "JPEG", "WEBP"))
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
LOGO, OTHER_LOGO = (small_logo(image_file(size=size), path="logo") for size in ((9, 9), (8, 8)))
PICTURE, OTHER_PICTURE = (
    square_picture(image_file(mode=mode), path="picture") for mode in ("RGB", "RGBA")
)
