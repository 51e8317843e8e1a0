#!/usr/bin/env bash
# script_test.sh SOURCE KEEPER
#
# However script/test ends, the servers that its tests have shared end with it; and what was not built for want of a
# package counts as skipped. The build and ctest are stood in for; the server is a real one.
set -euo pipefail
source=$1 keeper=$2
command -v redis-server >/dev/null || { echo "skipped: redis-server is not installed" && exit 4; }
tree=$(mktemp -d)
trap '[[ -z ${running:-} ]] || kill "$running"; rm -rf "$tree"' EXIT
# The servers of others are elsewhere; ports are taken where everybody takes them.
ports=${TMPDIR:-/tmp}/simba-servers-$UID/ports
export TMPDIR=$tree/tmp
place=$TMPDIR/simba-servers-$UID/shared/redis
mkdir -p "$ports" "$tree"/{bin,script,build/dev/testing/servers} "$TMPDIR/simba-servers-$UID"
ln -s "$ports" "$TMPDIR/simba-servers-$UID"
ln -s "$source"/script/{test,lib.sh} "$tree/script"
ln -s "$keeper" "$tree/build/dev/testing/servers"

# stand_in PATH LINE...: a program in the tree.
stand_in() {
  local file=$tree/$1
  shift
  printf '%s\n' '#!/usr/bin/env bash' "$@" >"$file"
  chmod +x "$file"
}
stand_in script/bootstrap
stand_in bin/cmake "echo '-- stores/mysql is left out: libmariadb was not found'"
stand_in bin/ninja
# The test that fails, or runs until somebody stops it.
stand_in bin/ctest "build/dev/testing/servers/simba_keep_server redis && cp '$place/address' '$tree/address'" \
  "[[ \$HOW == fails ]] || { touch '$tree/waits' && sleep 100; }" "echo no tests >\"\$4\"" 'exit 8'

# ended CODE EXPECTED: how script/test ended, and that its server was there and is not any more.
ended() {
  (($1 == $2)) || { echo "script/test exits with $1, not $2" && exit 1; }
  [[ -s $tree/address ]] || { echo "no server was started" && exit 1; }
  ! (: <>"/dev/tcp/$(tr : / <"$tree/address")") 2>/dev/null || { echo "its server is still there" && exit 1; }
  flock -n "$place/keeper.lock" true || { echo "its keeper is still there" && exit 1; }
  rm "$tree/address"
}

code=0
HOW=fails PATH=$tree/bin:$PATH "$tree/script/test" -j 1 >"$tree/said" 2>&1 || code=$?
ended "$code" 1
[[ $(<"$tree/build/dev/skipped.txt") == $'stores/mysql\tleft out: libmariadb was not found' ]] ||
  { echo "a store was left out, and nobody is told" && exit 1; }
[[ $(tail -n 1 "$tree/said") == '0 passed, 0 failed, 1 skipped' ]] || { cat "$tree/said" && exit 1; }

for signal in INT TERM; do
  code=0
  rm -f "$tree/waits"
  # In the background of a script SIGINT is ignored unless somebody says otherwise.
  HOW=waits PATH=$tree/bin:$PATH env --default-signal=INT "$tree/script/test" -j 1 >"$tree/said" 2>&1 &
  running=$!
  until [[ -e $tree/waits ]]; do
    kill -0 "$running" || { cat "$tree/said" && exit 1; }
    sleep 0.02
  done
  kill -"$signal" "$running"
  wait "$running" || code=$?
  running=''
  ended "$code" $((128 + $(kill -l "$signal")))
done
