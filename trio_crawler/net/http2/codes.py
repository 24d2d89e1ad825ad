"""The error codes of HTTP/2 (RFC 9113, 7), by their names."""

_NAMES = (
    *("NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT"),
    *("STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR"),
    *("CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"),
)


def code_name(code: int) -> str:
    """Return the name of an error code; a code without a name is named by its number."""
    return _NAMES[code] if 0 <= code < len(_NAMES) else f"error code {code}"
