#!/usr/bin/env bash
# bootstrap_test.sh SOURCE
#
# How script/bootstrap becomes root: by sudo without a word, by its password on a terminal, or not at all, and says then
# what to type. sudo and dpkg are stood in for; nothing is installed.
set -euo pipefail
source=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree"/{bin,script,tmp}
cp "$source"/script/{bootstrap,lib.sh} "$tree/script"
printf '#!/bin/sh\n' >"$tree/bin/dpkg-query" # nothing is there yet
cat >"$tree/bin/sudo" <<EOF
#!/bin/sh
echo "\$*" >>"$tree/asked"
case "\$HOW \$1" in
  "knows -n" | "asks -v" | "asks env") exit 0 ;;
  *) exit 1 ;;
esac
EOF
chmod -R a+rX "$tree"
chmod a+x "$tree"/bin/*
chmod a+rwx "$tree/tmp"

# Root does not ask: somebody else has to.
as_user=()
if ((EUID == 0)); then as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups); fi
"${as_user[@]}" test -x "$tree/script/bootstrap" ||
  { echo "skipped: $tree cannot be entered by another user, or root cannot become one" && exit 4; }

# bootstrap HOW EXPECTED-CODE [terminal]: what it asked sudo for is in $tree/asked, what it said in $tree/said.
bootstrap() {
  local how=$1 expected=$2 code=0 command=("$tree/script/bootstrap" run)
  [[ ${3:-} != terminal ]] || command=(script --quiet --return --command "${command[*]}" /dev/null)
  : >"$tree/asked" && chmod a+w "$tree/asked"
  "${as_user[@]}" env HOW="$how" PATH="$tree/bin:$PATH" TMPDIR="$tree/tmp" SHELL=/bin/bash "${command[@]}" \
    >"$tree/said" 2>&1 </dev/null || code=$?
  ((code == expected)) || { echo "$how: exits with $code, not $expected" && cat "$tree/said" && exit 1; }
}

# says FILE TEXT
says() {
  grep -qF -- "$2" "$tree/$1" || { echo "$1 does not say '$2':" && cat "$tree/$1" && exit 1; }
}

bootstrap knows 0
says asked '-n env DEBIAN_FRONTEND=noninteractive apt-get'

bootstrap asks 1
says said '  sudo apt-get update && sudo apt-get install --no-install-recommends '
! grep -qx -- -v "$tree/asked" || { echo "it asks where nobody can answer" && exit 1; }

bootstrap asks 0 terminal
says asked 'env DEBIAN_FRONTEND=noninteractive apt-get'
says said 'installing needs root: '

bootstrap refuses 1 terminal
says said '  sudo apt-get update && sudo apt-get install --no-install-recommends '
