"""The command: options in, a crawl on the screen, a report, an exit status.

It uses what `trio_crawler` and its `report` export, and nothing else of the crawler.
"""

from trio_crawler.cli.main import main as main
