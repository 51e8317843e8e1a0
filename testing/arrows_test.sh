#!/usr/bin/env bash
# arrows_test.sh SOURCE
#
# Plants includes in a tree: script/check-arrows finds all that are not allowed, and none of the others.
set -euo pipefail
source=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree/script"
ln -s "$source"/script/{check-arrows,lib.sh} "$tree/script"
git -C "$tree" init -q
expected=$tree/expected
: >"$expected"

# allowed FILE LINE: adds the line to the file.
allowed() {
  mkdir -p "$(dirname "$tree/$1")"
  printf '%s\n' "$2" >>"$tree/$1"
}

# refused FILE LINE: so does this; it has to be found.
refused() {
  allowed "$1" "$2"
  printf '%s:%d: %s\n' "$1" "$(wc -l <"$tree/$1")" "$2" >>"$expected"
}

refused include/simba/locker.h '#include "core/engine.h"'
refused include/simba/redis.h '#include <hiredis/hiredis.h>'
allowed include/simba/locker.h '#include "simba/term.h"'

refused core/engine.cc '#include "stores/memory/memory_store.h"'
refused core/engine.cc '#include "client/registry.h"'
refused core/engine.h '#include <fmt/format.h>'
refused core/engine.h '#include "testing/fake_executor.h"'
refused core/engine_test.cc '#include "stores/memory/memory_store.h"'
allowed core/engine_test.cc '#include "testing/fake_executor.h"'
allowed core/engine.cc '#include <sys/eventfd.h>'

refused stores/redis/redis_store.cc '#include "core/engine.h"'
refused stores/redis/redis_store_test.cc '#include "client/registry.h"'
refused stores/redis/redis_store.cc '#include "stores/mysql/literal.h"'
refused stores/redis/redis_store.h '#include "testing/servers/redis.h"'
refused stores/kit/pool.h '#include "cli/output.h"'
refused stores/mysql/mysql_store.cc 'std::this_thread::sleep_for(pause);'
allowed stores/redis/redis_store.cc '#include <hiredis/hiredis.h>'
allowed stores/redis/redis_store.cc '#include "stores/kit/pool.h"'

refused client/registry.cc '#include "cli/usage.h"'
refused client/registry.h '#include "core/engine.h"'
refused client/registry.cc '#include "stores/redis/redis_store.h"'
refused client/built_in_stores.cc.in '#include "torture/torture.h"'
refused client/registry.h '#include "testing/servers/relay.h"'
refused client/registry_test.cc '#include "cli/usage.h"'
allowed client/registry.cc '#include "core/coded.h"'
allowed client/built_in_stores.cc.in '#include "stores/redis/administration.h"'
allowed client/hostile_test.cc '#include "testing/servers/relay.h"'

refused torture/attack.cc '#include "cli/output.h"'
refused torture/attack.h '#include "core/engine.h"'
allowed torture/attack.h '#include "testing/dice.h"'

refused cli/run.cc '#include "stores/sqlite/sqlite_store.h"'
refused cli/run.cc '#include "client/registry.h"'
refused cli/doctor.cc '#include "simba/mysql.h"'
refused cli/run.cc '#include "torture/torture.h"'
refused cli/run.h '#include "testing/servers/redis.h"'
refused cli/run.cc '#include "examples/demo_verdict.h"'
allowed cli/run.cc '#include "core/names.h"'
allowed cli/run.cc '#include "simba/locker.h"'
allowed cli/torture.cc '#include "torture/torture.h"'
allowed cli/embedded_stores.cc '#include "client/registry.h"'
allowed cli/outage_test.cc '#include "testing/servers/redis.h"'
allowed cli/tool_servers_fixture.h '#include "testing/servers/shared.h"'

refused examples/lock.cc '#include "core/engine.h"'
refused examples/schedule.cc '#include "testing/fake_executor.h"'
allowed examples/lock.cc '#include "simba/simba.h"'

found=0
"$tree/script/check-arrows" >"$tree/said" || found=$?
((found == 1)) || { echo "script/check-arrows exits with $found" && exit 1; }
# Its other lines say why, and end with a colon.
diff <(sort "$expected") <(grep -v ':$' "$tree/said" | sort -u)
