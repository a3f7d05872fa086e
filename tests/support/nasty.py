"""Two hundred nasty strings: control sequences, what turns text round, and secrets in addresses."""

from __future__ import annotations

import re

SECRET = "hunter2"  # noqa: S105 - nobody's
SEQUENCES = [
    "\x1b[2J",
    "\x1b[31;1m",
    "\x1b[?1049h",
    "\x1b]52;c;aHVudGVyMg==\x07",
    "\x1b]0;title\x1b\\",
    "\x1b]8;;http://example.org\x07link\x1b]8;;\x07",
    "\x1bP+q544e\x1b\\",
    "\x1b_payload\x1b\\",
    "\x1b^private\x1b\\",
    "\x1bX string\x1b\\",
    "\x1bc",
    "\x1b(0",
    "\x1b#8",
    "\x1b",
    "\x1b[",
    "\x1b]",
    "\x9b2J",
    "\x9d52;c;aGk=\x9c",
    "\x90q\x9c",
    "\x85",
    "\x9c",
    "\r",
    "\x08\x08\x08",
    "\x07",
    "\x00",
    "\x0b\x0c",
    "\x7f",
    "\u202eexe.txt",
    "\u2066x\u2069",
    "\u200f",
    "\u2028",
    "\u2029",
    "\u061c",
    "\x1b[31",
    "\x1b\x1b[2J",
    "\x1b]52;c;x\x1b[2J\x07",
    "\x9b\x9b31m",
    "\x1b[38;2;1;2;3m",
    "\x0e",
    "\x05",
]
CARRIERS = ["{}", "numpy{}", "/opt/a{}b/lib.so", "{}line\nother{}", "https://example.org/{}"]
SECRETS = [
    f"https://user:{SECRET}@example.org/simple",
    f"https://{SECRET}@example.org/simple",
    f"https://user:a/{SECRET}@example.org/simple",
    f"https://user:{SECRET}/b@example.org/simple",
    f"https://user:{SECRET}@x@example.org/simple",
    f"https://user:x@{SECRET}@example.org/simple",
    f"https://example.org/simple?token={SECRET}",
    f"https://example.org/simple?a=b&token={SECRET}#egg=x",
    f"https://example.org/#access_token={SECRET}",
    f"https://example.org/a.whl#egg=x&access_token={SECRET}",
    f"https://user:{SECRET}@example.org:bad/simple",
    f"https://user:it's-{SECRET}@example.org/simple",
    f'https://user:"{SECRET}@example.org/simple',
    f"git+https://user:{SECRET}@example.org/x.git@main#egg=x",
    f"hint: `https://example.org/simple?token={SECRET}` answered 404",
    f"a https://u:{SECRET}@h/x and https://example.org/?{SECRET} b",
    f"postgres://user:{SECRET}@[::1]:80/x",
]
NASTY = [carrier.replace("{}", what) for carrier in CARRIERS for what in SEQUENCES] + [
    prefix + secret for prefix in ("", "\x1b[2J") for secret in SECRETS
]
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def is_clean(text: str) -> bool:
    return not FORBIDDEN.search(text) and SECRET not in text
