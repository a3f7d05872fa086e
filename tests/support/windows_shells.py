"""What cmd and PowerShell make of a line that is pasted at their prompt: an argument vector.

Written from the documentation that `ortgpu_fix.messages.shells` names, and shares no code with it.
Both end with the rules by which a C program splits its command line. What would not be one plain
command (a redirection, a pipe, a second command, a block) raises NotOneCommandError.
"""

from __future__ import annotations

import re
from collections.abc import Mapping


class NotOneCommandError(Exception):
    """The shell would do something else than start one program with these words."""


def split_as_c_does(line: str) -> list[str]:
    """Split a command line as the C runtime of Microsoft does."""
    words: list[str] = []
    word, quoted, begun, at = "", False, False, 0
    while at < len(line):
        slashes = len(line[at:]) - len(line[at:].lstrip("\\"))
        after = line[at + slashes : at + slashes + 1]
        if after == '"':
            word += "\\" * (slashes // 2)
            at += slashes + 1
            begun = True
            if slashes % 2:
                word += '"'
            elif quoted and line[at : at + 1] == '"':
                word += '"'
                at += 1
            else:
                quoted = not quoted
        elif slashes:
            word += "\\" * slashes
            at += slashes
            begun = True
        elif after in " \t" and not quoted:
            if begun:
                words.append(word)
            word, begun = "", False
            at += 1
        else:
            word += after
            begun = True
            at += 1
    return [*words, word] if begun else words


def cmd(line: str, variables: Mapping[str, str]) -> list[str]:
    """Return what a program gets that is started at the prompt of cmd."""
    expanded, at = "", 0
    while at < len(line):
        if line[at] == "%":
            end = line.find("%", at + 1)
            name = line[at + 1 : end].upper() if end > at else ""
            if name in variables:
                expanded += variables[name]
                at = end + 1
                continue
        expanded += line[at]
        at += 1
    passed, quoted, at = "", False, 0
    while at < len(expanded):
        letter = expanded[at]
        if letter == "^" and not quoted:
            passed += expanded[at + 1 : at + 2]
            at += 2
            continue
        if letter == '"':
            quoted = not quoted
        elif letter in "&|<>" and not quoted:
            raise NotOneCommandError(letter)
        passed += letter
        at += 1
    return split_as_c_does(passed)


def powershell(line: str, variables: Mapping[str, str], *, since_7_3: bool) -> list[str]:
    """Return what a program gets that is started at the prompt of PowerShell on Windows.

    Up to 7.2 a value with blanks is put between quotes as it is, and others are passed bare; from
    7.3 on the value arrives as it is.
    """
    values: list[str] = []
    at = 0
    if line.startswith("& "):
        at = 2
    elif re.match("['\"]", line):
        raise NotOneCommandError("a string")
    while at < len(line):
        if line[at].isspace():
            at += 1
            continue
        value, at = _powershell_word(line, at, variables)
        values.append(value)
    if since_7_3:
        return values
    program, *rest = values
    passed = [f'"{value}"' if re.search(r"\s", value) or not value else value for value in rest]
    return [program, *split_as_c_does(" ".join(passed))]


def _powershell_word(line: str, at: int, variables: Mapping[str, str]) -> tuple[str, int]:
    """Return a word and where it ends."""
    begin, value = at, ""
    if line[at] in "@#,~":
        raise NotOneCommandError(line[at])
    while at < len(line) and not line[at].isspace():
        letter = line[at]
        if letter in "'\u2018\u2019\u201a\u201b":
            text, at = _verbatim(line, at + 1)
            value += text
        elif letter in '"\u201c\u201d\u201e':
            text, at = _expandable(line, at + 1, variables)
            value += text
        elif letter in "&|<>;(){},`$":
            raise NotOneCommandError(letter)
        else:
            value += letter
            at += 1
    if line[begin] == "-" and re.search("[.:]", value):
        raise NotOneCommandError("a parameter, split in two")
    return value, at


def _verbatim(line: str, at: int) -> tuple[str, int]:
    single = "'\u2018\u2019\u201a\u201b"
    value = ""
    while at < len(line):
        if line[at] in single:
            if line[at + 1 : at + 2] and line[at + 1] in single:
                value += line[at + 1]
                at += 2
                continue
            return value, at + 1
        value += line[at]
        at += 1
    raise NotOneCommandError("an open string")


def _expandable(line: str, at: int, variables: Mapping[str, str]) -> tuple[str, int]:
    double = '"\u201c\u201d\u201e'
    value = ""
    while at < len(line):
        letter = line[at]
        if letter in double:
            if line[at + 1 : at + 2] and line[at + 1] in double:
                value += line[at + 1]
                at += 2
                continue
            return value, at + 1
        if letter == "`":
            value += line[at + 1 : at + 2]
            at += 2
        elif letter == "$":
            named = re.match(r"\$(\w+)", line[at:])
            if line[at + 1 : at + 2] in {"(", "{"}:
                raise NotOneCommandError("$(")
            value += variables.get(named[1].upper(), "") if named else "$"
            at += len(named[0]) if named else 1
        else:
            value += letter
            at += 1
    raise NotOneCommandError("an open string")
