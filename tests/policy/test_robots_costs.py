"""What robots.txt files cost at the worst: to read, and for each URL after that."""

from __future__ import annotations

import time

import pytest

from trio_crawler.policy.robots import MAX_BYTES, parse_rules

pytestmark = pytest.mark.slow

LONG_URL = "http://h.example/" + "a" * 2_066


def filled(line) -> bytes:
    """Fill a robots.txt to the last byte that counts with numbered lines."""
    text, number = ["User-agent: *\n"], 0
    size = len(text[0])
    while size < MAX_BYTES:
        text.append(line(number))
        size += len(text[-1])
        number += 1
    return "".join(text[:-1]).encode()


EXPENSIVE = {
    "many stars": lambda n: f"Disallow: /*{'a*' * 1_000}b{n}\n",
    "as many stars as fit": lambda n: f"Disallow: /*{'a*' * 8_000}b{n}\n",
    "stars that match long": lambda n: f"Disallow: /*{'a*' * (900 - n)}ba*{'a' * (n // 5)}\n",
    "ten stars": lambda n: f"Disallow: /*{'a*' * 10}b{n}\n",
    "short": lambda n: f"Disallow: /*a{n:x}\n",
    "the same piece": lambda n: f"Disallow: /*{n}*{'a' * 16}b\n",
    "repeating pieces": lambda n: f"Disallow: /*{'a' * 51}*{'a' * 25}b{'a' * 25}*{n}\n",
    "prefixes of all lengths": lambda n: f"Disallow: /{'a' * n}b\n",
    "one prefix, many ends": lambda n: f"Disallow: /a*{n}$\n",
    "heads": lambda n: f"Disallow: /{n}*aaaa\n",
}


@pytest.mark.parametrize("line", EXPENSIVE.values(), ids=EXPENSIVE.keys())
def test_no_file_of_500_kib_makes_a_long_url_cost_more_than_5_ms(line, capsys):
    rules = parse_rules(filled(line), "bot")
    spent = min(seconds(rules.allows, LONG_URL) for _ in range(5))
    with capsys.disabled():
        print(f" {rules!r}: {spent * 1e3:.2f} ms", end="")
    assert spent < 5e-3 * slower()


MANY = {
    "rules": lambda n: f"Disallow: /{n}\n",
    "wildcards": lambda n: f"Disallow: /*{n}*$\n",
    "escapes": lambda n: f"Disallow: /%%%{n}%61\n",
    "stars": lambda n: f"Disallow: /{n}{'*a' * 4_000}\n",
    "latin 1": lambda n: f"Disallow: /ü{n}\n",
    "controls": lambda n: "Disallow: /" + "\1a" * 8_000 + "\n",
    "agents": lambda n: "User-agent: *\n" if n < 18_000 else f"Disallow: /{n}\n",
    "bad sitemaps": lambda n: f"Sitemap: http://[{n}\n",
    "colons": lambda n: ":\n",
    "empty lines": lambda n: "\n",
}


@pytest.mark.parametrize("line", MANY.values(), ids=MANY.keys())
def test_no_500_kib_cost_a_second(line, capsys):
    text = "".join(line(n) for n in range(MAX_BYTES // len(line(0))))
    body = ("User-agent: *\n" + text).encode("latin-1")
    start = time.process_time()
    rules = parse_rules(body, "bot")
    spent = time.process_time() - start
    with capsys.disabled():
        print(f" {rules!r}: {spent * 1e3:.0f} ms", end="")
    assert spent < 1


def slower() -> float:
    """Return by how much this machine is slower than the one of the promise, 1 if it is not."""
    turns = min(seconds(lambda: [None for _ in range(1_000_000)]) for _ in range(3))
    return max(1.0, turns / 0.016)


def seconds(call, *arguments) -> float:
    start = time.process_time()
    call(*arguments)
    return time.process_time() - start
