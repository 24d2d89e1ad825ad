"""Slips that are no behaviour but text: each is compiled or executed, as written and cured."""

from __future__ import annotations

SLIPS = {
    "11": (
        "if moved:\n    follow()\n else:\n    parse()",
        "if moved:\n    follow()\nelse:\n    parse()",
    ),
    "16": (
        "class Crawler:\n    def __init__(self):\n        self.loop = loop\nCrawler()",
        "class Crawler:\n    def __init__(self, loop):\n        self.loop = loop\nCrawler(main)",
    ),
    "17": ("self.crawler.crawl()", "crawler.crawl()"),
    "a": ("select(list(reads))", "select(list(waiting_read))"),
    "b": (
        "async def ready():\n    result = return await crawl()",
        "async def ready():\n    result = await crawl()",
    ),
}


class Crawls:
    def crawl(self) -> None:
        """Stand for the crawler of the script."""


def tried(text: str) -> str:
    """Run a text as a module beside the one that has `main`, and say what came of it."""
    names = {
        "main": "the loop of the script",
        "crawler": Crawls(),
        "waiting_read": {},
        "select": len,
        "moved": True,
        "follow": list,
        "parse": list,
    }
    try:
        exec(compile(text, "a slip", "exec"), names)
    except (SyntaxError, NameError) as error:
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        return f"{type(error).__name__}: {message}"
    return "runs"
