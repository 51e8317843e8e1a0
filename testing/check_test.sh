#!/usr/bin/env bash
# check_test.sh SOURCE
#
# script/check --recent, whose three minutes are over at once: clang-tidy still looks at the last commit and at what is
# not committed, and at nothing else; and when a quarter of an hour more is over, at nothing. clang and the build are stood in for.
set -euo pipefail
source=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{bin,script,core,build/dev}
ln -s "$source"/script/{check,lib.sh} "$tree/script"
echo build >"$tree/.gitignore"

# stand_in PATH LINE...: a program in the tree.
stand_in() {
  local file=$tree/$1
  shift
  printf '%s\n' '#!/usr/bin/env bash' "$@" >"$file"
  chmod +x "$file"
}
stand_in script/bootstrap
stand_in bin/cmake
# shellcheck disable=SC2016 # for the programs
{
  stand_in bin/clang-format 'cat "${@: -1}"'
  stand_in bin/clang-tidy 'echo "${@: -1}" >>looked-at'
  stand_in bin/date 'echo $((EPOCHSECONDS + LATER))'
}

in_tree() { git -C "$tree" -c user.name=test -c user.email=test@localhost "$@"; }

# commit FILE...: new lines in these, and a commit.
commit() {
  local file
  for file in "$@"; do echo "// $file" >>"$tree/core/$file"; done
  in_tree add core .gitignore script
  in_tree commit -qm "$*"
}
in_tree init -q
commit base.cc
commit earlier.cc earlier_test.cc edited.cc new.h new_test.cc gone.cc
commit last.cc last_test.cc named.h named.cc
echo '// edited' >>"$tree/core/edited.cc"
echo '// new' >>"$tree/core/new.cc"
rm "$tree/core/gone.cc"
for file in "$tree"/core/*.cc; do printf '{"file": "%s", "command": ""}\n' "$file"; done |
  sed '1s/^/[/; $!s/$/,/; $s/$/]/' >"$tree/build/dev/compile_commands.json"

# looks SECONDS TAIL FILE...: clang-tidy that comes so much later looks at these, and the step says so.
# Other steps have nothing to look at here.
looks() {
  local later=$1 tail=$2
  shift 2
  echo >"$tree/looked-at"
  LATER=$later PATH=$tree/bin:$PATH "$tree/script/check" --recent >"$tree/said" 2>&1 || true
  if ! diff <(printf '%s\n' "$@" | sort) <(sort "$tree/looked-at") || ! grep -q "$tail" "$tree/said"; then
    cat "$tree/said" && exit 1
  fi
}
looks 300 '9 files, 4 of them not looked at' '' core/{edited,last,last_test,named,new}.cc
looks 2000 '9 files, 9 of them not looked at' ''
