"""Recognise links and addresses in a short text that a stranger typed, such as a name.

Mail programs make links of plain text, so a text counts as a link if a program or a person could
read one in it. A name that is left out by mistake does less harm than a link that is not.
"""

import re
import unicodedata

# Characters that are read as a dot, a slash or a colon.
LOOKALIKES = {
    letter: plain
    for plain, letters in (
        (".", "\u0589\u06d4\u2022\u2024\u2219\u22c5\u3002\ua4f8"),
        ("/", "\u2044\u2215\u2571\u29f8"),
        (":", "\u02d0\u05c3\u0703\u0704\u1365\u2236\ua789"),
    )
    for letter in map(ord, letters)
}
INVISIBLE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs"})
# Characters that change the order of others hide a link in any text.
REORDERING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
LINK = re.compile(
    r"""
    @
  | //
  | [\\<>{}|=`^~*_\#$\ufffd]                          # markup
  | \]\s*\(
  | &\#?\w+;
  | %[0-9a-f]{2}
  | \b[a-z][a-z0-9+-]*\s*:                            # a scheme
  | \bh\s*[tx]\s*[tx]\s*p
  | \bwww
  | \bxn--
  | \w\.[^\W_]{2,}                                    # shop.example
  | \w\s+\.\s*\w                                      # shop . example
  | [a-z0-9][\u00b7\u30fb](?!l)[a-z]{2,}              # shop·example, but Gal·la and ジョン・スミス
  | [\[(]\s*(at|dot|point|punkt|punto|\.)\s*[\])]     # shop (dot) example
  | \w\s+(dot|punkt)\s+(app|biz|co|com|de|example|info|io|link|me|net|online|org|ru|shop|top|xyz)\b
  | \d+(\.\d+){2,}
  | (\d[\s()./-]*){7,}                                # a telephone number
    """,
    re.VERBOSE | re.IGNORECASE,
)


def looks_like_link(text: str) -> bool:
    """Whether the text contains what may be read as a link, an address or a telephone number.

    >>> [looks_like_link(text) for text in ("Dr. Ada B. Berg", "shop\\u3002example", "a@b")]
    [False, True, True]
    """
    return bool(REORDERING.search(text)) or any(map(LINK.search, _readings(text)))


def _readings(text: str) -> tuple[str, str]:
    """The text without invisible characters, with plain forms of letters, dots and slashes; and
    the same without accents.
    """
    plain = unicodedata.normalize("NFKC", text.translate(LOOKALIKES)).translate(LOOKALIKES)
    plain = "".join(letter for letter in plain if unicodedata.category(letter) not in INVISIBLE)
    bare = unicodedata.normalize("NFD", plain)
    return plain, "".join(letter for letter in bare if not unicodedata.combining(letter))
