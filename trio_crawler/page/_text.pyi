from collections.abc import Callable

def outline(source: bytes, /) -> tuple[int, list[tuple[int, int]]]: ...
def words(
    source: bytes,
    signals: frozenset[bytes],
    hints: bytes,
    around: int,
    change: Callable[[bytes], bytes],
    /,
) -> tuple[bytes, list[tuple[int, int]], bytes]: ...
def hints(signals: frozenset[bytes], /) -> bytes: ...
