"""Outcomes in, text out: the report of a crawl for people, and exports for programs."""

from trio_crawler.report.brief import brief
from trio_crawler.report.changes import changes
from trio_crawler.report.csv import HEAD as CSV_HEAD
from trio_crawler.report.csv import row as csv_row
from trio_crawler.report.jsonl import line
from trio_crawler.report.links_csv import HEAD as LINKS_HEAD
from trio_crawler.report.links_csv import rows as link_rows
from trio_crawler.report.sitemap_xml import entry as sitemap_entry
from trio_crawler.report.sitemap_xml import home as sitemap_home
from trio_crawler.report.sitemap_xml import index as sitemap_index
from trio_crawler.report.sitemap_xml import parts as sitemap_parts
from trio_crawler.report.text import Report
from trio_crawler.report.visible import visible
from trio_crawler.report.warc.archive import Warc

__all__ = [
    "CSV_HEAD",
    "LINKS_HEAD",
    "Report",
    "Warc",
    "brief",
    "changes",
    "csv_row",
    "line",
    "link_rows",
    "sitemap_entry",
    "sitemap_home",
    "sitemap_index",
    "sitemap_parts",
    "visible",
]
