#!/usr/bin/env bash
# try.sh SOURCE SCRATCH STEP KIND
#
# One way to get the library, tried from outside:
#
#   install static|shared           installs the libraries alone into SCRATCH/KIND/prefix
#   find_package static|shared      a project that finds that installation
#   pkg_config static|shared        a compiler that asks pkg-config
#   in_tree add_subdirectory|fetch_content   a project that builds the source as part of itself
#   outside_store static            a store from outside, with the installed contract suite
#   simulated static                somebody's own code, in the installed simulation
set -euo pipefail
source=$1 scratch=$2 step=$3 kind=$4
here=$source/testing/packaging
prefix=$scratch/$kind/prefix
export CCACHE_NOHASHDIR=1

fail() {
  echo "$*" >&2
  exit 1
}

# Compiles fast; what is tested here is not code.
configure() {
  local launcher=()
  if command -v ccache > /dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  cmake -G Ninja -Wno-dev -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 "${launcher[@]}" "$@" > "$scratch/configure.log" ||
    { cat "$scratch/configure.log" >&2 && return 1; }
}

build() {
  cmake --build "$@" > "$scratch/build.log" || { tail -n 50 "$scratch/build.log" >&2 && return 1; }
}

# The program locks on memory: and on sqlite: and says so twice.
run() {
  local files lines
  files=$(mktemp -d "$scratch/files.XXXXXX")
  lines=$("$1" "$files/locks.db" | tee /dev/stderr | grep -c '^locked ') || true
  rm -rf "$files"
  [[ $lines == 2 ]] || fail "$1 did not lock twice"
}

install() {
  local shared=OFF
  [[ $kind == static ]] || shared=ON
  rm -rf "$prefix"
  configure -S "$source" -B "$scratch/$kind/build" -DBUILD_SHARED_LIBS=$shared -DCMAKE_INSTALL_PREFIX="$prefix" \
    -DSIMBA_BUILD_TESTS=OFF -DSIMBA_BUILD_TOOL=OFF -DSIMBA_BUILD_BENCHMARKS=OFF -DSIMBA_BUILD_EXAMPLES=OFF
  build "$scratch/$kind/build"
  cmake --install "$scratch/$kind/build" > "$scratch/install.log"
  [[ -f $prefix/include/simba/simba.h ]] || fail "the headers were not installed"
  # Nothing that is installed may know where it was built; the prefix itself may be inside the tree.
  local found
  found=$(grep -rIh --include='*.cmake' --include='*.pc' --include='*.h' -F "$source/" "$prefix" | grep -vF "$prefix" || true)
  [[ -z $found ]] || fail "an installed file names the source tree: $found"
}

find_package() {
  local dir=$scratch/$kind/find_package
  rm -rf "$dir"
  configure -S "$here/outside" -B "$dir" -DHOW=find_package -DCMAKE_PREFIX_PATH="$prefix"
  build "$dir"
  run "$dir/program"
  run "$dir/program_with_all"
}

pkg_config() {
  local program=$scratch/$kind/pkg_config_program flags
  flags=$(PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name simba.pc)") pkg-config --cflags --libs simba)
  # shellcheck disable=SC2086
  c++ -std=c++20 -O0 "$here/outside/program.cc" $flags -o "$program"
  LD_LIBRARY_PATH=$(dirname "$(find "$prefix" -name 'libsimba_core.*' | head -n 1)") run "$program"
}

in_tree() {
  local dir=$scratch/$kind
  rm -rf "$dir"
  configure -S "$here/outside" -B "$dir" -DHOW="$kind" -DSIMBA_SOURCE="$source"
  build "$dir" --target program program_with_all
  run "$dir/program"
  run "$dir/program_with_all"
}

outside_store() {
  local dir=$scratch/outside_store
  rm -rf "$dir"
  configure -S "$source/examples/outside_store" -B "$dir" -DCMAKE_PREFIX_PATH="$prefix"
  build "$dir"
  [[ -f $prefix/include/simba/testing/fake_executor.h && -f $prefix/include/simba/testing/faulty_store.h ]] ||
    fail "the fakes were not installed"
  # Those that take no time: the calls themselves, and one with the engine.
  "$dir/outside_store_test" --gtest_brief=1 --gtest_filter='Outside.ARe*:Outside.ANew*:Outside.Destroy*' > "$scratch/contract.log" ||
    { cat "$scratch/contract.log" >&2 && fail "the contract suite says no"; }
  grep -q '[1-9][0-9]* tests\? from' "$scratch/contract.log" || fail "no case of the contract suite was run"
}

simulated() {
  local dir=$scratch/simulated
  rm -rf "$dir"
  configure -S "$here/simulated" -B "$dir" -DEXAMPLE="$source/examples/simulated.cc" -DCMAKE_PREFIX_PATH="$prefix"
  build "$dir"
  "$dir/simulated" > "$scratch/simulated.log" || { cat "$scratch/simulated.log" >&2 && fail "the example says no"; }
  grep -q '^careless, lease server: broken' "$scratch/simulated.log" || fail "nothing was simulated"
}

mkdir -p "$scratch"
case $step in
  install | find_package | pkg_config | in_tree | outside_store | simulated) "$step" ;;
  *) fail "there is no step '$step'" ;;
esac
