"""The command: options in, a crawl on the screen, a report, an exit status.

It uses only public names of the library. `main` has the two commands, whose options are declared
in `options`; `crawl` and `report` run them. `build` makes the parts of a crawl, `directory` opens
the crawl directory, `exports` writes files.
"""

from trio_crawler.cli.main import main as main
