"""The page room: it parses the bytes of a response into facts.

Everything here is pure and synchronous, needs time linear in the size of the body, and raises
nothing, whatever a page contains.
"""
