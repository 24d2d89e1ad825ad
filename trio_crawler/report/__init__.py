"""Outcomes in, text out: the report of a crawl for people, and JSON Lines for programs."""

from trio_crawler.report.brief import brief
from trio_crawler.report.jsonl import line
from trio_crawler.report.text import Report
from trio_crawler.report.visible import visible

__all__ = ["Report", "brief", "line", "visible"]
