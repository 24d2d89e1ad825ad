from collections.abc import Callable

def tags(
    text: str, ends: frozenset[str] = ..., /
) -> list[tuple[str, int, int, int, int, int, bool]] | None: ...
def scan(
    text: str, decode: Callable[[str], str], tidy: bool, max_links: int, /
) -> tuple[list[str], list[str], str | None, str | None] | None: ...
