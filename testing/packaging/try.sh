#!/usr/bin/env bash
# try.sh SOURCE SCRATCH STEP KIND
#
# One way to get the library, tried from outside:
#
#   install static|shared           installs the libraries alone into SCRATCH/KIND/prefix
#   find_package static|shared      a project that finds that installation
#   one_store static|shared         a project that wants simba::core and simba::sqlite and nothing else
#   symbols shared                  what the shared libraries there show: names of ours alone
#   pkg_config static|shared        a compiler that asks pkg-config
#   in_tree add_subdirectory|fetch_content static|shared   a project that builds the source as part of itself
#   outside_store KIND              a store from outside, with the contract suite that is installed in SCRATCH/KIND/prefix
#   simulated static                somebody's own code, in the installed simulation
#   install_tool tool               the command of the build around SCRATCH, installed into a prefix and used there
#   in_packages shared              each file of these installations is in one Debian package
#   verify_unit tool                what systemd thinks of the installed unit
set -euo pipefail
source=$1 scratch=$2 step=$3 kind=$4 linkage=${5:-}
here=$source/testing/packaging
prefix=$scratch/$kind/prefix
export CCACHE_NOHASHDIR=1

fail() {
  echo "$*" >&2
  exit 1
}

# tree NAME: a folder to build in, beside that of the build around.
tree() { printf '%s-outside-%s' "${scratch%/*}" "$1"; }

# With the flags of the dev preset, and as deep in the tree: what the build around has compiled, ccache does not compile
# again.
configure() {
  local launcher=()
  if command -v ccache > /dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  cmake -G Ninja -Wno-dev -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO='-O2 -g1' \
    -DCMAKE_COLOR_DIAGNOSTICS=ON -DSIMBA_WERROR=ON "${launcher[@]}" "$@" > "$scratch/configure.log" ||
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
  local dir shared=OFF
  dir=$(tree "$kind")
  [[ $kind == static ]] || shared=ON
  rm -rf "$prefix"
  configure -S "$source" -B "$dir" -DBUILD_SHARED_LIBS=$shared -DCMAKE_INSTALL_PREFIX="$prefix" \
    -DSIMBA_BUILD_TESTS=OFF -DSIMBA_BUILD_TOOL=OFF -DSIMBA_BUILD_BENCHMARKS=OFF -DSIMBA_BUILD_EXAMPLES=OFF
  build "$dir"
  cmake --install "$dir" > "$scratch/install.log"
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

one_store() {
  local dir=$scratch/$kind/one_store libraries
  rm -rf "$dir"
  configure -S "$here/outside" -B "$dir" -DHOW=one_store -DCMAKE_PREFIX_PATH="$prefix"
  build "$dir"
  "$dir/one_store" "$dir/locks.db" | grep -q '^locked, token' || fail "$dir/one_store did not lock"
  libraries=$(ldd "$dir/one_store" | awk '{ print $1 }')
  ! grep -E 'simba_client|libpq|mariadb|mongoc|hiredis|zookeeper' <<< "$libraries" ||
    fail "a program with one store needs others, too"
}

# symbols: what users call, what the library with connect() asks of a store, and their types. What a template of the
# standard library became in ours is weak, and the same in every program.
symbols() {
  local library shown found=''
  local ours='^. ((vtable|typeinfo|typeinfo name|guard variable|VTT) for |(non-virtual|virtual) thunk to )?simba::v0::'
  while read -r library; do
    found=1
    shown=$(nm --dynamic --demangle --defined-only "$library" | cut -d' ' -f2-)
    grep -q '^T simba::v0::' <<< "$shown" || fail "$library shows nothing of ours"
    shown=$(grep -vE -e "$ours" -e '^T simba::[a-z]+::[a-z]+(\[abi:cxx11\])?\(' \
      -e '^[VWu] [^(]*(\bstd|__gnu_cxx)::' <<< "$shown" || true)
    [[ -z $shown ]] || fail "$library shows what is not for users:"$'\n'"$shown"
  done < <(find "$prefix" -name 'libsimba_*.so' | sort)
  [[ -n $found ]] || fail "there is no shared library in $prefix"
}

pkg_config() {
  local program=$scratch/$kind/pkg_config_program flags
  flags=$(PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name simba.pc)") pkg-config --cflags --libs simba)
  # shellcheck disable=SC2086
  c++ -std=c++20 -O0 "$here/outside/program.cc" $flags -o "$program"
  LD_LIBRARY_PATH=$(dirname "$(find "$prefix" -name 'libsimba_core.*' | head -n 1)") run "$program"
}

in_tree() {
  local dir shared=OFF
  dir=$(tree "$kind-$linkage")
  [[ $linkage == static ]] || shared=ON
  rm -rf "$dir"
  configure -S "$here/outside" -B "$dir" -DHOW="$kind" -DSIMBA_SOURCE="$source" -DBUILD_SHARED_LIBS=$shared
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
  "$dir/outside_store_test" --gtest_brief=1 --gtest_filter='OutsideRegistry.*:Outside.ARe*:Outside.ANew*:Outside.Destroy*' > "$scratch/contract.log" ||
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

# All that an installation in somebody's home needs is below its prefix.
install_tool() {
  local files simba=$prefix/bin/simba code=0
  rm -rf "$prefix"
  cmake --install "$scratch/.." --component simba_runtime --prefix "$prefix" > "$scratch/install.log"
  files=$(mktemp -d "$scratch/files.XXXXXX")
  SIMBA_STORE=sqlite:$files/locks.db "$simba" run installed -- true || fail "simba run does not work"
  rm -rf "$files"
  "$simba" ls --store postgresql://127.0.0.1:1/nowhere 2> /dev/null || code=$?
  ((code == 69)) || fail "the program for servers was not found: exit code $code, not 69"
  grep -q '^.TH SIMBA' "$prefix/share/man/man1/simba-run.1" || fail "there is no manual page of simba run"
  bash -c 'source "$1" && complete -p simba' - "$prefix/share/bash-completion/completions/simba" > /dev/null ||
    fail "bash cannot complete"
  [[ -s $prefix/share/zsh/vendor-completions/_simba && -s $prefix/share/fish/vendor_completions.d/simba.fish ]] ||
    fail "zsh or fish cannot complete"
}

# installed_files: the installations as Debian sees them, below /usr and with its folder for libraries.
installed_files() {
  (cd "$scratch/shared/prefix" && find . ! -type d) | sed 's|^./|usr/|; s|^usr/lib/|usr/lib/triplet/|'
  (cd "$scratch/tool/prefix" && find . ! -type d) | sed 's|^./|usr/|'
  # Of the third, which is a tree of its own, what no other has.
  (cd "$scratch/static/prefix" && find include/simba/testing lib/libsimba_contract.a ! -type d) |
    sed 's|^|usr/lib/triplet/simba-testing/|'
}

in_packages() {
  local debian=$source/packaging/debian list package pattern file bad=0
  local -A packages=() used=()
  while read -r file; do
    for list in "$debian"/*.install; do
      package=$(basename "$list" .install)
      while read -r pattern; do
        # shellcheck disable=SC2053 # it is a pattern; a folder means all that is in it
        [[ $file == $pattern || $file == $pattern/* ]] || continue
        packages[$file]+=" $package"
        used[$package $pattern]=1
      done < "$list"
    done
    [[ ${packages[$file]:-} =~ ^\ [^\ ]+$ ]] ||
      { echo "$file is in these packages:${packages[$file]:- none}" && bad=1; }
  done < <(installed_files)
  for list in "$debian"/*.install; do
    package=$(basename "$list" .install)
    grep -qx "Package: $package" "$debian/control" || { echo "$list: no such package" && bad=1; }
    while read -r pattern; do
      [[ -n ${used[$package $pattern]:-} ]] || { echo "$list: $pattern is nothing that is installed" && bad=1; }
    done < "$list"
  done
  # The name of a library's package is its soname; the version of the packages is the project's.
  local version
  version=$(sed -n 's/^project(simba VERSION \([0-9.]*\) .*/\1/p' "$source/CMakeLists.txt")
  [[ -e $debian/libsimba${version%.*}.install ]] || { echo "no package libsimba${version%.*}" && bad=1; }
  [[ $(head -n 1 "$debian/changelog") == "simba ($version) "* ]] ||
    { echo "$debian/changelog is not about version $version" && bad=1; }
  ((bad == 0)) || fail "packaging/debian does not fit what is installed"
}

verify_unit() {
  local said
  command -v systemd-analyze > /dev/null || { echo "skipped: systemd-analyze is not installed" && exit 4; }
  said=$(systemd-analyze verify --man=no "$prefix/lib/systemd/system/simba-lead@.service" 2>&1) ||
    fail "systemd does not take the unit: $said"
  said=$(grep -F simba-lead <<< "$said" || true)
  [[ -z $said ]] || fail "systemd warns of the unit: $said"
}

mkdir -p "$scratch"
case $step in
  install | find_package | one_store | symbols | pkg_config | in_tree | outside_store | simulated) "$step" ;;
  install_tool | in_packages | verify_unit) "$step" ;;
  *) fail "there is no step '$step'" ;;
esac
