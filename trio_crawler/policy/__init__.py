"""The rules of a crawl: scope, limits, politeness, retries, robots.txt, traps. Nothing waits."""
