# Shared by the scripts beside it: where the tree is, how lines look, how long a step takes, and how what was
# started is stopped. Sourced, never run.
# shellcheck shell=bash
# shellcheck disable=SC2034 # variables are for the scripts

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit
jobs=$(nproc)
# Another build folder or clone with the same flags finds what this one has compiled; precompiled headers are cached.
export CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=$root CCACHE_SLOPPINESS=pch_defines,time_macros

# MongoDB's driver keeps counters in a file of shared memory by its process id. Of a process that is killed it stays, and the
# next one of that id complains on its standard error.
export MONGOC_DISABLE_SHM=1

live='' bold='' red='' green='' dim='' plain=''
if [[ -t 1 && ${TERM:-dumb} != dumb ]]; then
  live=1
  if [[ -z ${NO_COLOR:-} ]]; then
    bold=$'\e[1m' red=$'\e[31m' green=$'\e[32m' dim=$'\e[2m' plain=$'\e[0m'
    export CLICOLOR_FORCE=1 # the compiler's colours survive the pipe
  fi
fi

fail() {
  printf '%s%s%s\n' "$red" "$*" "$plain" >&2
  exit 1
}

clock() { printf '%s' "${EPOCHREALTIME//[.,]/}"; } # microseconds

# seconds START: the time since START, as "1.2 s".
seconds() {
  local tenths=$((($(clock) - $1) / 100000))
  printf '%d.%d s' $((tenths / 10)) $((tenths % 10))
}

# row NAME SECONDS [NOTE]: one aligned line of a summary.
row() { printf '  %-14s%9s%s\n' "$1" "$2" "${3:+   $3}"; }

# usage: prints the comment at the top of the calling script.
usage() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; }

# --- what runs in the background ------------------------------------------------------------------------------------

child=''

# family PID: every process of PID's session, and their descendants, by id.
family() {
  local stat id line fields grew=1
  local -A parent=() member=()
  for stat in /proc/[0-9]*/stat; do
    { read -r line <"$stat"; } 2>/dev/null || continue
    id=${stat//[!0-9]/}
    read -ra fields <<<"${line##*) }"
    [[ ${fields[0]} == Z ]] && continue
    parent[$id]=${fields[1]}
    [[ $id == "$1" || ${fields[3]} == "$1" ]] && member[$id]=1
  done
  while ((grew)); do
    grew=0
    for id in "${!parent[@]}"; do
      [[ -n ${member[${parent[$id]}]:-} && -z ${member[$id]:-} ]] && member[$id]=1 grew=1
    done
  done
  printf '%s\n' "${!member[@]}"
}

# stop_family PID: asks PID and all it started to end, and ends what is still there two seconds later.
stop_family() {
  local ids alive id
  mapfile -t ids < <(family "$1")
  [[ -n ${ids[*]} ]] || return 0
  kill -TERM "${ids[@]}" 2>/dev/null || true
  for _ in {1..20}; do
    alive=()
    for id in "${ids[@]}"; do
      [[ -e /proc/$id && $(<"/proc/$id/stat") != *') Z '* ]] && alive+=("$id")
    done 2>/dev/null
    ((${#alive[@]})) || return 0
    sleep 0.1
  done
  kill -KILL "${alive[@]}" 2>/dev/null || true
}

# stop_child: what an interrupted script owes the machine.
stop_child() {
  [[ -z $child ]] || stop_family "$child"
  child=''
}

interrupted() {
  local IFS=$' \t\n' # the read we come from may have set it
  trap '' INT TERM HUP
  [[ -z $live ]] || printf '\r\e[K'
  stop_child
  printf '%s\n' "stopped" >&2
  exit "$1"
}
trap 'interrupted 130' INT
trap 'interrupted 143' TERM HUP

# moving_row LABEL COUNT WHAT: a row that the next one overwrites.
moving_row() { printf '\r\e[K  %-14s%9s   %s%.60s%s' "$1" "$2" "$dim" "${3##*/}" "$plain"; }

# watch_steps LABEL NOISE COMMAND...: runs COMMAND in a session of its own and shows its numbered steps as one line
# that moves (on a terminal) or now and then (elsewhere). Other lines that match NOISE are dropped, the rest is shown.
watch_steps() {
  local label=$1 noise=$2 line text='' last=$SECONDS rc=0 out
  local step='^ *\[?([0-9]+)/([0-9]+)(\]| Test +#[0-9]+:) *(.*)$'
  shift 2
  exec {out}< <(exec setsid "$@" 2>&1 </dev/null)
  child=$!
  while IFS= read -r -u "$out" line; do
    if [[ $line =~ ^\ +Start\ +[0-9]+:\ (.*) ]]; then
      [[ -z $live ]] || moving_row "$label" "$text" "${BASH_REMATCH[1]}"
    elif [[ $line == '[0/'*'] Re-'* ]]; then
      continue # ninja looks at the build files
    elif [[ $line =~ $step ]]; then
      text="${BASH_REMATCH[1]}/${BASH_REMATCH[2]}"
      if [[ $line == *'***'* && $line != *'***Skipped'* && $line != *'(Disabled)'* ]]; then
        line=${BASH_REMATCH[4]%% *}
        printf '%s  %-14s%9s   %sfailed%s %s\n' "${live:+$'\r\e[K'}" "$label" "$text" "$red" "$plain" "$line"
      elif [[ -n $live ]]; then
        moving_row "$label" "$text" "${BASH_REMATCH[4]% [.]*}"
      elif ((SECONDS - last >= 10)); then
        row "$label" "$text"
        last=$SECONDS
      fi
    elif [[ -n $line && ! $line =~ $noise ]]; then
      printf '%s%s\n' "${live:+$'\r\e[K'}" "$line"
    fi
  done
  exec {out}<&-
  [[ -z $live ]] || printf '\r\e[K'
  wait "$child" || rc=$?
  stop_child # what the command left behind
  return "$rc"
}

# --- building -------------------------------------------------------------------------------------------------------

# configure PRESET: quiet unless it fails.
configure() {
  local log=build/$1/configure.log
  mkdir -p "build/$1"
  cmake --preset "$1" >"$log" 2>&1 && return
  cat "$log" >&2
  return 1
}

# build PRESET [TARGET...]: shows progress while there is something to do.
build() {
  local preset=$1
  shift
  watch_steps build '^(ninja: (Entering|no work)|-- |Re-checking)' ninja -C "build/$preset" -k 0 -j "$jobs" "$@"
}

# has_target PRESET TARGET
has_target() { ninja -C "build/$1" -t query "$2" >/dev/null 2>&1; }

# --- the tree -------------------------------------------------------------------------------------------------------

in_git() { git -c safe.directory="$root" "$@"; }

# tree_files [PATTERN...]: the files of the project, tracked or new, not ignored.
tree_files() {
  local file
  in_git ls-files -co --exclude-standard -- "$@" | while IFS= read -r file; do
    [[ ! -f $file ]] || printf '%s\n' "$file"
  done
}
