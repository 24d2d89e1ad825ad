"""Parse the bytes of a response into facts.

All functions are pure and synchronous, and take time linear in the size of the body. No content
of a page makes them raise.
"""
