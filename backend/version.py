"""Which code a run was made by: the release, and the commit where the deployment tells it."""

from importlib.metadata import PackageNotFoundError, version

from backend import env

try:
    RELEASE = version("touchstone")
except PackageNotFoundError:
    RELEASE = "0.0.0"

_commit = env.text("TOUCHSTONE_COMMIT")
CODE_VERSION = f"{RELEASE}+{_commit[:12]}" if _commit else RELEASE
