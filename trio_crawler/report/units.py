"""Write counts, sizes and durations the way people read them."""

from __future__ import annotations


def count(number: int, noun: str = "") -> str:
    """Write a number with thousands separators, and the noun in its number: `1 page`."""
    if not noun:
        return f"{number:,}"
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size(octets: int) -> str:
    """Write a number of bytes in binary units: `532 B`, `12.3 KiB`."""
    if octets < 1024:
        return f"{octets} B"
    amount = octets / 1024
    for unit in ("KiB", "MiB", "GiB"):
        # Not 1,024: what would be rounded up to 1024.0 belongs to the next unit.
        if amount < 1023.95:
            return f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:,.1f} TiB"


def duration(seconds: float) -> str:
    """Write seconds as `34 ms`, `1.23 s` or `1,234 s`."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.2f} s" if seconds < 99.995 else f"{seconds:,.0f} s"
