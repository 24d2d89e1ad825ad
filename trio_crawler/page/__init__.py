"""The page room: bytes come in, facts go out."""
