"""What is still to be fetched, what was seen, and when the crawl is over."""
