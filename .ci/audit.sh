#!/usr/bin/env bash
# Which of the pinned packages have known vulnerabilities (`make audit`). Ends 1 when there are any. Where the service
# that knows cannot be reached, or does not know them, it says so and ends 0: an audit that could not be made is told,
# and stops no build.
set -uo pipefail
cd "$(dirname "$0")/.."
uv=${UV:-.venv/bin/uv}
told=$(mktemp -d)
trap 'rm -rf "$told"' EXIT
timeout 90 "$uv" tool run --quiet pip-audit==2.10.1 --disable-pip --require-hashes --progress-spinner off --format json \
  -r requirements.lock >"$told/found" 2>"$told/errors"
"${PYTHON:-.venv/bin/python}" - "$told" <<'PYTHON'
import json
import sys
from pathlib import Path

told = Path(sys.argv[1])


def not_audited(why: str) -> None:
    print(f"Not audited: {why}. Run `make audit` where its service can be reached.")

try:
    packages = json.loads((told / "found").read_text())["dependencies"]
except (ValueError, LookupError, TypeError):
    not_audited("the audit could not be made here")
    print("\n".join((told / "errors").read_text().splitlines()[-3:]))
    sys.exit(0)
# pip-audit calls it a success when it skipped every one of them.
skipped = [one for one in packages if "skip_reason" in one]
weak = [one for one in packages if one.get("vulns")]
if len(skipped) == len(packages):
    why = skipped[0]["skip_reason"] if skipped else "there are none"
    not_audited(f"none of the {len(packages)} packages was looked at ({why})")
    sys.exit(0)
print(f"{len(packages) - len(skipped)} of {len(packages)} packages audited: {len(weak)} with known vulnerabilities.")
for one in weak:
    for known in one["vulns"]:
        mended = ", ".join(known.get("fix_versions", [])) or "no release"
        print(f"  {one['name']} {one['version']}: {known['id']}, mended in {mended}")
if skipped:
    print("Not audited: " + ", ".join(one["name"] for one in skipped))
sys.exit(bool(weak))
PYTHON
