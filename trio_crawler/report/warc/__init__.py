"""WARC 1.1 (ISO 28500:2017): an archive of the requests and the responses of a crawl."""
