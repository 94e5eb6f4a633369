"""Mail: subject, who and when, and the body. Attachments are named, not read."""

import email
from email.message import EmailMessage, MIMEPart
from email.policy import default

from backend.core.types import ExtractedText
from backend.readers import markup
from backend.readers.building import DEFAULT_LIMITS, ReadLimits, TextBuilder, one_line
from backend.readers.encoding import decode

_SHOWN = ("From", "To", "Cc", "Date")


def read(data: bytes, *, limits: ReadLimits = DEFAULT_LIMITS) -> ExtractedText:
    """The plain body where there is one, else the HTML body. The subject is the heading."""
    message = email.message_from_bytes(data, policy=default)
    builder = TextBuilder(limits=limits)
    builder.heading(_header(message, "Subject"), level=1)
    shown = ((name, _header(message, name)) for name in _SHOWN)
    builder.block("\n".join(f"{name}: {value}" for name, value in shown if value))
    body = message.get_body(preferencelist=("plain", "html"))
    if body is not None:
        text = _content(body)
        if body.get_content_subtype() == "html":
            markup.write(text, builder)
        else:
            builder.block(text)
    for part in message.iter_attachments():
        builder.warnings.append(f"attachment not read: {one_line(part.get_filename() or 'without a name')}")
    return builder.build(reader="eml")


def _header(message: EmailMessage, name: str) -> str:
    # A malformed header makes the parser raise any of these; the rest of the mail is still worth reading.
    try:
        return one_line(str(message.get(name, "")))
    except (ValueError, LookupError, AttributeError, IndexError, TypeError):
        return ""


def _content(part: MIMEPart) -> str:
    raw = part.get_payload(decode=True)
    if not isinstance(raw, bytes):
        return ""
    decoded = decode(raw, declared=part.get_content_charset())
    return decoded.text if decoded is not None else ""
