"""The store: the crawl directory, read and written synchronously.

Public are `Run`, `End` and `Change`, the records that a `trio_crawler.History` returns; `Stream`,
a file with each record exactly once; `FileLock`, a lock on a file; and `DifferentCrawl` and
`InUse`, two kinds of `trio_crawler.StoreError`. `schema` documents the tables and views of
`crawl.sqlite`.

A frontier writes with `store.Store`, which uses all other modules: `writer` writes a batch as
rows, `rows` converts outcomes to rows and back, `walk` reads one walk (a pass over the site),
`runs` begins and ends runs, `changes` compares two walks, `history` reads and merges directories,
`streams` are the files of records, `database` opens and reads the database, and `files` locks it.
"""

import lazy_loader

# A crawl without a directory needs the errors, but no SQLite.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
