"""Convert outcomes to text or bytes: the report of a crawl for people, exports for programs.

Public are `Report` with `CrawlFacts`; `Shapes` with its rows, each a `Shape`; `one_line` for a
single outcome, `progress_line` for a crawl that is running; `to_jsonl`; `csv_row` with `CSV_HEAD`,
and `link_rows` with `LINKS_HEAD`; `Warc`; `sitemap_entry`, `sitemap_parts`, `sitemap_home` and
`sitemap_index`; `changes`; `visible`. None of them opens a file.
"""

from trio_crawler.report.csv import CSV_HEAD, LINKS_HEAD, csv_row, link_rows
from trio_crawler.report.facts import CrawlFacts
from trio_crawler.report.jsonl import to_jsonl
from trio_crawler.report.sections import changes
from trio_crawler.report.shapes import Shape, Shapes
from trio_crawler.report.sitemap_xml import (
    sitemap_entry,
    sitemap_home,
    sitemap_index,
    sitemap_parts,
)
from trio_crawler.report.text import Report, one_line, progress_line
from trio_crawler.report.visible import visible
from trio_crawler.report.warc.archive import Warc

__all__ = [
    "CSV_HEAD",
    "LINKS_HEAD",
    "CrawlFacts",
    "Report",
    "Shape",
    "Shapes",
    "Warc",
    "changes",
    "csv_row",
    "link_rows",
    "one_line",
    "progress_line",
    "sitemap_entry",
    "sitemap_home",
    "sitemap_index",
    "sitemap_parts",
    "to_jsonl",
    "visible",
]

for _function in (
    changes,
    csv_row,
    link_rows,
    one_line,
    progress_line,
    sitemap_entry,
    sitemap_home,
    sitemap_index,
    sitemap_parts,
    to_jsonl,
    visible,
):
    _function.__module__ = __name__
