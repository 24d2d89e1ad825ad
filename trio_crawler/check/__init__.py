"""Check links: join the outcomes of a crawl to findings, and write these for people and programs.

Public are `LinkCheck` and `check_report`; `Verdicts` with `Verdict` and `Defect`, and
`parse_statuses` and `parse_patterns` for the texts of its options; `Finding` with `Hop` and
`Identity`; `Baseline`, `Comparison`, `read_baseline` and `write_baseline`; `CheckFacts` with
`NotChecked`; `command_line`; and the exports `to_junit`, `to_sarif`, `to_markdown`,
`to_annotations` and `to_json`. None of them opens a file.
"""

import lazy_loader

# Lazily: a check needs but the exports that are asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
