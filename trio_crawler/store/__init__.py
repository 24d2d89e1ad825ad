"""The store: all of a crawl directory that is synchronous.

`store` is what a crawl writes with, `history` what everybody else reads with. `schema` documents
the tables and views of `crawl.sqlite`. `rows` turns outcomes into rows and back, `walk` reads one
walk, `streams` are the files that hold each record exactly once; `database`, `lock` and `faults`
are what these stand on.
"""
