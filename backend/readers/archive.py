"""What a zip container says of itself before anything is unpacked."""

import io
import zipfile

from backend.core.errors import DocumentError, ErrorCode
from backend.readers.building import ReadLimits

_MOST_PARTS = 20_000


def check(data: bytes, *, limits: ReadLimits) -> None:
    """Raises DocumentError where the parts are too many, too large when unpacked, or locked.

    The declared sizes bound what is unpacked: zipfile reads no further than they say.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as container:
        parts = container.infolist()
    if len(parts) > _MOST_PARTS or sum(part.file_size for part in parts) > limits.n_unpacked_bytes:
        raise DocumentError(
            ErrorCode.DOCUMENT_TOO_LARGE,
            f"The file would unpack to more than {limits.n_unpacked_bytes // 1_000_000:,} MB. "
            "Split it, or take large pictures out.",
        )
    if any(part.flag_bits & 0x1 for part in parts):
        raise DocumentError(ErrorCode.DOCUMENT_ENCRYPTED, "The file is protected by a password. Save it without one.")
