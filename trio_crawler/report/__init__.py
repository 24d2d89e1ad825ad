"""Convert outcomes to text or bytes: the report of a crawl for people, exports for programs.

Public are `Report` with `CrawlFacts`; `Shapes` with its rows, each a `Shape`; `one_line` for a
single outcome, `progress_line` for a crawl that is running; `to_jsonl`; `csv_row` with `CSV_HEAD`,
and `link_rows` with `LINKS_HEAD`; `Warc`; `sitemap_entry`, `sitemap_parts`, `sitemap_home` and
`sitemap_index`; `changes`; `visible`. None of them opens a file.

Of a link check: `LinkCheck` and `check_report`; `Verdicts` with `Verdict` and `Defect`, and
`parse_statuses` and `parse_patterns` for the texts of its options; `Finding` with `Hop` and
`Identity`; `Baseline`, `Comparison`, `read_baseline` and `write_baseline`; `CheckFacts` and
`command_line`; and the exports `to_junit`, `to_sarif`, `to_markdown`, `to_annotations` and
`to_json`.
"""

from trio_crawler.policy.verdict import (
    Defect,
    Verdict,
    Verdicts,
    parse_patterns,
    parse_statuses,
)
from trio_crawler.report.annotations import to_annotations
from trio_crawler.report.baseline import Baseline, Comparison, read_baseline, write_baseline
from trio_crawler.report.check_facts import CheckFacts, command_line
from trio_crawler.report.check_text import check_report
from trio_crawler.report.checking import LinkCheck
from trio_crawler.report.csv import CSV_HEAD, LINKS_HEAD, csv_row, link_rows
from trio_crawler.report.facts import CrawlFacts
from trio_crawler.report.finding import Finding, Hop, Identity
from trio_crawler.report.jsonl import to_jsonl
from trio_crawler.report.junit import to_junit
from trio_crawler.report.markdown import to_markdown
from trio_crawler.report.sarif import to_sarif
from trio_crawler.report.sections import changes
from trio_crawler.report.shapes import Shape, Shapes
from trio_crawler.report.sitemap_xml import (
    sitemap_entry,
    sitemap_home,
    sitemap_index,
    sitemap_parts,
)
from trio_crawler.report.summary_json import to_json
from trio_crawler.report.text import Report, one_line, progress_line
from trio_crawler.report.visible import visible
from trio_crawler.report.warc.archive import Warc

__all__ = [
    "CSV_HEAD",
    "LINKS_HEAD",
    "Baseline",
    "CheckFacts",
    "Comparison",
    "CrawlFacts",
    "Defect",
    "Finding",
    "Hop",
    "Identity",
    "LinkCheck",
    "Report",
    "Shape",
    "Shapes",
    "Verdict",
    "Verdicts",
    "Warc",
    "changes",
    "check_report",
    "command_line",
    "csv_row",
    "link_rows",
    "one_line",
    "parse_patterns",
    "parse_statuses",
    "progress_line",
    "read_baseline",
    "sitemap_entry",
    "sitemap_home",
    "sitemap_index",
    "sitemap_parts",
    "to_annotations",
    "to_json",
    "to_jsonl",
    "to_junit",
    "to_markdown",
    "to_sarif",
    "visible",
    "write_baseline",
]

for _function in (
    changes,
    command_line,
    csv_row,
    link_rows,
    one_line,
    parse_patterns,
    parse_statuses,
    progress_line,
    read_baseline,
    sitemap_entry,
    sitemap_home,
    sitemap_index,
    sitemap_parts,
    to_annotations,
    to_json,
    to_jsonl,
    to_junit,
    to_markdown,
    to_sarif,
    visible,
    write_baseline,
):
    _function.__module__ = __name__
