from collections.abc import Callable

def scan(
    text: str, decode: Callable[[str], str], tidy: bool, max_links: int, /
) -> tuple[list[str], list[str], str | None, str | None] | None: ...
