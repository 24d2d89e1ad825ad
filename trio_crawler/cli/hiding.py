"""Hiding: secrets are overwritten in the arguments that `ps` shows, once Python has copied them.

That is possible on Linux only, and not at once: until then every user of the machine can read
them. `@FILE` and its like are never there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress

_USERINFO = re.compile(rb"((?:https?:)?[/\\]*)([^/?#\\@]*:[^/?#\\]*)(@.*)", re.I | re.S)
_START, _END = 45, 46
"""The places of arg_start and arg_end in /proc/self/stat behind the name (proc(5))."""


def hide_arguments(flags: Collection[str]) -> None:
    """Overwrite the values of these options, and users and passwords in URLs, if possible."""
    with suppress(OSError):
        with open("/proc/self/cmdline", "rb") as file:
            shown = file.read()
        hidden = b"\0".join(_hidden(shown.split(b"\0"), {flag.encode() for flag in flags}))
        if hidden != shown:
            _overwrite(shown, hidden)


def _hidden(words: list[bytes], flags: Collection[bytes]) -> Iterator[bytes]:
    """Yield the words, each of the same length as before."""
    follows = False
    for word in words:
        flag, equals, value = word.partition(b"=")
        if follows:
            yield _masked(word)
        elif flag in flags and equals:
            yield flag + equals + _masked(value)
        elif found := _USERINFO.fullmatch(word):
            yield found[1] + _masked(found[2]) + found[3]
        else:
            yield word
        follows = not follows and word in flags


def _masked(value: bytes) -> bytes:
    return value if value.startswith(b"@") else b"*" * len(value)


def _overwrite(shown: bytes, hidden: bytes) -> None:
    """Write into the memory that the system reads the arguments from."""
    with open("/proc/self/stat", "rb") as file:
        numbers = file.read().rpartition(b")")[2].split()
    start, end = int(numbers[_START]), int(numbers[_END])
    if not start or end - start != len(shown) or len(hidden) != len(shown):
        # The system does not tell.
        return
    import ctypes

    if ctypes.string_at(start, len(shown)) == shown:
        ctypes.memmove(start, hidden, len(hidden))
