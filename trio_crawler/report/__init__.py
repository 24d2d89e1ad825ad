"""Convert outcomes to text or bytes: the report of a crawl for people, exports for programs.

Public are `Report` with `CrawlFacts` and `Shape`; `one_line` for a single outcome, `progress_line`
for a crawl that is running; `to_jsonl` and `jsonl_with_links`; `csv_row` with `CSV_HEAD`, and
`link_rows` with `LINKS_HEAD`; `Warc`; `sitemap_entry`, `sitemap_parts`, `sitemap_home` and
`sitemap_index`; `changes`; `attempted`; `visible`. None of them opens a file.
"""

import lazy_loader

# Lazily: a crawl does not need the archive.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

# At once: its module has the same name, and would stand for it.
from trio_crawler.report.visible import visible as visible  # noqa: E402
