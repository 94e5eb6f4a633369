#!/usr/bin/env bash
# Which of the pinned packages have known vulnerabilities (`make audit`). Ends 1 when there are any. Where the service
# that knows cannot be reached it says so and ends 0: an audit that could not be made is told, and stops no build.
set -uo pipefail
cd "$(dirname "$0")/.."
uv=${UV:-.venv/bin/uv}
said=$(timeout 90 "$uv" tool run --quiet pip-audit==2.10.1 --disable-pip --require-hashes --progress-spinner off -r requirements.lock 2>&1)
ended=$?
if [ "$ended" -eq 0 ]; then
  echo "${said:-No known vulnerabilities found}"
elif grep -q "known vulnerabilit" <<<"$said"; then
  echo "$said"
  exit 1
else
  echo "Not audited: the audit could not be made here. Run \`make audit\` where its service can be reached."
  echo "$said" | tail -n 3
fi
