from collections.abc import Callable

def tags(
    text: str, ends: frozenset[str] = ..., lines: str | None = ..., /
) -> list[tuple[str, int, int, int, int, int, bool]] | None: ...
def targets(
    body: bytes, decode: Callable[[str], str], /, *joining: object
) -> (
    tuple[bool, dict[str, set[str] | None], list[tuple[int, str, str, str]], set[str], bytes]
    | None
): ...
def scan(
    body: bytes,
    decode: Callable[[str], str],
    max_links: int,
    own: str = ...,
    home: str = ...,
    root: int = ...,
    known: dict[str, str] = ...,
    shared: dict[str, str] = ...,
    longest: int = ...,
    most: int = ...,
    other: Callable[[str, str], str] = ...,
    room: int = ...,
    /,
) -> tuple[bool, list[str], list[str], str | None, str | None] | None: ...
