"""How people say that a library is not there, that a GPU is not seen or not used.

In: a word of `failures.toml`, with what it stands beside; out: the expression of such a sentence.
A sentence that only supposes it (of a condition, of a shell, in a list of what was mended) says
nothing.
"""

from __future__ import annotations

import re

BESIDE = ("gpu-unseen", "gpu-unused")
"""What people say of a GPU."""
_FILE = r"(?a:(?P<library>(?<![\w.+-])[\w.+-]{1,80}\.(?:dll|so)(?:\.\d[.\d]{0,10})?)(?!\.?\w))"
_LINKS = (
    r"(?: ?(?:which|that|it|file|library|DLL|is|was|are|were|has|been|does|do|did|could|can|be"
    r"|still|already|文件|一直|也|都|还|仍然|系统|打不开：|ファイル|が|は|も|을\(를\)|을|를|이|가|파일이|파일을"
    r"|est|n'est|wurde|wird|konnte|ist|è|non|não|foi|se|no|не|был|файл)(?![a-z])){0,5} ?"
    r"(?:ca|was|is|are|were|does|do|did|could|can)?"
)
"""What may stand between the name of a library and that it is not there."""
_NAMES = (
    r"(?:(?:the|a|these|those|file|files:?|library|libraries:?|DLLs:?|module|DLL|文件|файл|библиотеку"
    r"|найти|загрузить|die|Datei|le|fichier|el|archivo|o|arquivo|pliku) ){0,3}"
)
_CARD = (
    r"(?:(?:NVIDIA|nvidia|dedicated) )?(?:GPU|gpu|Gpu|显卡|顯卡|独显|видеокарт\w{1,3}|RTX ?\d0\d0"
    r"|[Gg]raphics card|Grafikkarte|carte graphique|tarjeta gráfica|placa de vídeo)s?"
)
_BESIDE = {
    "card_before": _CARD,
    "card_after": _CARD,
    "gpu_before": rf"(?:{_CARD}|CUDA|cuda|Cuda)",
    "gpu_after": rf"(?:{_CARD}|CUDA|cuda|Cuda)",
    "cpu_after": r"(?:CPU(?:Execut\w{2,4}Provider)?|cpu|процессор\w{0,3})",
}
"""What people call the GPU (a card is not CUDA, which may be the toolkit) and the CPU, and on which
side of a word it stands."""
_BUILD = (
    r"(?![A-Za-z0-9_-]| (?:version|build|package|wheel|variant|support|fallback|memory|backend|for"
    r"|activity|usage|load|EP|by design)s?\b|版)"
)
"""What may not stand after it: a build for it is meant, or its memory."""
_ELSE = (
    r"(?! symbol| debug| depend|指定的| (?:in|at) (?!run ?time)[\w$/]"
    r"|[,;]? (?:falling|using|searching|trying|skipping|but found))"
)
"""What may not stand after it: something else is not there, or the library is elsewhere."""
_SUPPOSED = re.compile(
    r"\b(?:[Ii]f|[Ww]hen|[Uu]nless|[Ii]n case|[Aa]s long as|Should)\b(?! (?:I|we|it|the|running"
    r"|trying|starting|loading|using|importing)\b(?! library| file| DLL))"
    r"|\b(?:[Ww]enn|[Ss]i(?! reinstala)|no longer|[Ll]ooking for|[Cc]hecking|[Ss]kipping)\b"
    r"|如果|若|的话|場合"
    r"|^\W{0,4}(?:/(?:usr/)?bin/)?(?:rm|cp|mv|ls|ln|cat|chmod|chown|file|readelf|strip|install"
    r"|patchelf|du|find|stat|bash|dpkg-shlibdeps|COPY failed|CMake \w+|echo|raise|throw"
    r"|[Ff]ix(?:ed|es)?|[Rr]esolved|[Aa]dded)\b|^\s*(?:#|--|[-*] \[[ x]\])|\|\||ENOENT|nvc_info\.c"
    r"|cache key|checksum of ref|(?:log(?:ger)?|logging)\.\w+\(|\((?:will|not needed)"
)
"""What shows that a sentence tells of no failure: of a condition, of a search, of a shell's own
files, in code, or of what was mended."""
_CONDITION = re.compile(
    r"\b(?:[Ii]f|[Uu]nless)\b|\b(?:to|it|please|should|must) not us|not to use|[Ff]eature request"
)
"""What shows that it is a condition, or a wish."""
_OF_OTHERS = re.compile(
    r"uplicate of\b|^[\s>]*(?:[-*+]|\d{1,2}\.) (?:\[ \]|[Ff]ix(?:es|ed)?\b)"
    r"|^[\s>]*(?:Fix|Clos|Resolv)e[sd] #\d"
    r"|^\W{0,6}(?:(?:[Ss]olved|SOLVED)\b|[Rr]esolved:|已解决)"
)
"""What begins a line of a failure that is another's, was mended, or was not ticked in a form."""
_NOW = re.compile(r"\b(?:but|now|still|needed)\b|但|现在|仍|还")
"""What shows, after such a beginning, that it fails all the same."""
_SENTENCE = re.compile(r"\n|(?<=[a-z\d)]{2}[.!?]) |(?<=[。！？；])")
"""Where a sentence ends; `e.g.` ends none."""
BEFORE = 400
"""How far around a message its sentence, or who asks for a library, is looked for."""


def told_missing(word: str, *, after: bool) -> str:
    """Return the expression of a library that is not there, in words that people use.

    `word` is an expression itself, and stands after the library's name or before it.
    """
    if after:
        return rf"""{_FILE}['"`”」]?[,:，]?(?: [=-]>)?{_LINKS}{word}{_ELSE}"""
    return (
        rf"""{word}\w{{0,4}}[:：]? ?{_NAMES}['"`“「]?(?:[\w./\\:~-]{{1,200}}[/\\])?{_FILE}{_ELSE}"""
    )


def told_beside(word: str, where: str) -> str:
    """Return the expression of a GPU that is not seen or not used, in words that people use.

    `word` is an expression itself; `where`, a key of `_BESIDE`, tells what stands beside it.
    """
    what = rf"{_BESIDE[where]}{_BUILD}"
    if where.endswith("before"):
        return rf"(?<![A-Za-z0-9_-]){what}['\"`]? ?{_LINKS}{word}"
    articles = r"(?:(?:the|my|any|your|an?|le|la|mi|die|keine?|o|на) ){0,2}"
    return rf"{word}\w{{0,3}} ?{articles}['\"`]?{what}"


def is_supposed(match: re.Match[str], *, unless_condition: bool = False) -> bool:
    """Tell whether the sentence of `match` only supposes it.

    `unless_condition`: whether an `if` or a wish anywhere in it is enough.
    """
    start, end = match.span()
    first = max(0, start - BEFORE)
    ends = [found.end() for found in _SENTENCE.finditer(match.string, first, start)]
    after = next(_SENTENCE.finditer(match.string, end, end + BEFORE), None)
    last = after.start() if after else end + BEFORE
    sentence = match.string[ends[-1] if ends else first : last]
    return bool(_SUPPOSED.search(sentence) or (unless_condition and _CONDITION.search(sentence)))


def is_of_others(text: str, start: int) -> bool:
    """Tell whether the line of what stands at `start` says that this is not a failure of now."""
    line = text[max(0, start - BEFORE) : start].rpartition("\n")[2]
    return bool(_OF_OTHERS.search(line)) and not _NOW.search(line)
