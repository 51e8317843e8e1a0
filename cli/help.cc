#include "cli/help.h"

namespace simba::cli::help {

const char kSimba[] = R"(simba: run programs under a mutex that many processes and hosts share

  simba run nightly -- ./backup.sh        one backup at a time, the others wait
  simba run --wait 0 nightly -- ./backup.sh
                                          run it, or leave it to whoever runs it now
  simba lead app/leader -- ./server       keep a server running on one host of many
  simba schedule --every 5m report -- ./report
                                          run it each 5 minutes, on one host of many
  simba ls                                who holds what
  simba show nightly                      one mutex; exit code 0: held, 1: free
  simba watch nightly                     each change of its owner, until ^C
  simba release nightly                   take it away from its owner

Commands:
  run       run a program while owning a mutex
  lead      keep a program running on the leader
  schedule  run a program again and again on the leader
  ls        list the mutexes that are held
  show      say who holds a mutex
  watch     print each change of owner as it happens
  release   take a mutex away from its owner
  init      make what the store needs, or print it for somebody who may
  doctor    look whether the store is fit for use
  bench     measure how fast it is
  torture   attack a store, and see whether its promises hold
  config    print the settings, and where each comes from
  version   print the version

  completion prints a script that completes what is typed, for bash, zsh or fish.

Where mutexes live:
  --store URL or SIMBA_STORE; by default sqlite:, a file of this user on this host.
  sqlite:/srv/app/locks.db is a file of your choice; redis://, mysql://, postgresql://,
  mongodb:// and zookeeper:// are servers that many hosts share. A URL with a password belongs
  in SIMBA_STORE, or in a file that SIMBA_STORE_FILE names: everybody on the host can read command
  lines. 'simba config --help' tells of the file with settings.

On a terminal:
  headings and times are bold or dim, unless NO_COLOR is set to anything. TERM=dumb gets neither
  that nor the line that says who is waited for.

'simba COMMAND --help' shows more.
)";

const char kRun[] = R"(simba run [options] MUTEX -- PROGRAM [ARGUMENT...]

Waits for the mutex, runs the program while owning it, releases it. The program is ended
before anybody else can own the mutex, also when simba is stopped or killed.

  simba run nightly -- ./backup.sh        wait as long as it takes
  simba run --wait 30s nightly -- make    give up after 30 s (exit code 75)
  simba run --wait 0 nightly -- make      do not wait at all
  simba run nightly -- sh -c 'echo $SIMBA_TOKEN; make | tee log'
                                          several commands, a pipe: use a shell
  * * * * * simba run -q --wait 0 report -- /usr/local/bin/report
                                          in crontabs of several users or jobs

Options:
  --wait DURATION        wait at most this long for the mutex; 0: not at all
  -q, --quiet            say nothing but errors: not who is waited for, nor who holds it
                         when --wait is over
  --id LABEL             what others see as the owner; default: COUNTER:PID@HOST
  --ttl DURATION         the lease is renewed well within this (10s)
  --transition DURATION  and is free for others this much later (6s)
  --kill-after DURATION  TERM comes this long before KILL (a quarter of ttl + transition,
                         at most 2s)
  --max-hold DURATION    end the program after this long; default: never
  --store URL            where the mutex lives; default: SIMBA_STORE, else sqlite:
  --config FILE          the file with settings; see simba config --help

  Durations: 500ms, 10s, 1m30s, 2h, 1d.

The program finds in its environment:
  SIMBA_MUTEX, SIMBA_OWNER, and SIMBA_TOKEN: a number that grows from owner to owner. Pass
  it to what the program writes to; a resource that refuses smaller ones is safe even from a
  program that was paused.

Exit codes:
  the program's own, 128 + n if signal n ended it, 126 and 127 if it could not be run, and
  64 usage    69 store unavailable    70 ownership lost, program ended
  71 guardian process lost, program ended    75 not acquired
)";

const char kLead[] = R"(simba lead [options] MUTEX -- PROGRAM [ARGUMENT...]

Keeps a program running while this process leads: it is started when the mutex is acquired, ended
before anybody else can own it, and started again when it fails. Start the same command on several
hosts: one of them leads, the others wait to take over.

  simba lead app/leader -- ./server
  simba lead --restart always queue -- ./worker --once
  simba lead --hand-over-after 3 app/leader -- ./server

Options:
  --restart WHEN         on-failure (default): an exit with 0 ends simba lead too, with 0;
                         always: also then it is started again; never: its end is the end
  --delay DURATION       before it is started again (1s); doubled at each failure, up to 30s
  --hand-over-after N    after so many failures in a row leave the mutex to another (5); 0: never
  -q, --quiet            say nothing but errors
  --id LABEL             what others see as the owner; default: COUNTER:PID@HOST
  --ttl DURATION         the lease is renewed well within this (10s)
  --transition DURATION  and is free for others this much later (6s)
  --kill-after DURATION  TERM comes this long before KILL (a quarter of ttl + transition,
                         at most 2s)
  --store URL            where the mutex lives; default: SIMBA_STORE, else sqlite:
  --config FILE          the file with settings; see simba config --help

INT, TERM, HUP and QUIT end the program (TERM, then KILL), release the mutex, and then end simba
lead itself. The program finds SIMBA_MUTEX, SIMBA_OWNER and SIMBA_TOKEN, as with simba run.

Exit codes:
  the program's own where its end is the end: 0, with --restart never whatever it is; 128 + n if
  signal n ended it or simba lead, 126 and 127 if it could not be run, and
  64 usage    69 store unavailable    71 guardian process lost, program ended
)";

const char kSchedule[] = R"(simba schedule WHEN [options] MUTEX -- PROGRAM [ARGUMENT...]

Runs a program again and again while this process leads. Start the same command on several hosts:
one of them leads and runs it, the others wait to take over. Runs never overlap, here or across
hosts; what was missed because a run took too long is said, and not made up for. With --cron also
what was due while this process did not lead is said.

  simba schedule --every 5m report -- ./report
  simba schedule --cron '0 3 * * mon-fri' backup -- ./backup.sh
  simba schedule --after 10s queue -- ./drain-queue

When:
  --every DURATION         at this rate, counted from when this process began to lead
  --after DURATION         this long after the last run has ended
  --cron EXPRESSION        minute, hour, day of the month, month, day of the week, in local time;
                           @hourly, @daily, @weekly, @monthly and @yearly
  --first-after DURATION   with --every and --after: before the first run of each leader (0)

Options:
  -q, --quiet            say nothing but errors
  --id LABEL             what others see as the owner; default: COUNTER:PID@HOST
  --ttl DURATION         the lease is renewed well within this (10s)
  --transition DURATION  and is free for others this much later (6s)
  --kill-after DURATION  TERM comes this long before KILL (a quarter of ttl + transition,
                         at most 2s)
  --store URL            where the mutex lives; default: SIMBA_STORE, else sqlite:
  --config FILE          the file with settings; see simba config --help

A run that fails is said and does not end the schedule. INT, TERM, HUP and QUIT end the program
that runs (TERM, then KILL), release the mutex, and then end simba schedule itself. The program
finds SIMBA_MUTEX, SIMBA_OWNER and SIMBA_TOKEN, as with simba run.

Exit codes:
  64 usage    69 store unavailable    71 guardian process lost, program ended
  128 + n if signal n ended it. A program's own is said, and passed on to nobody.
)";

const char kLs[] = R"(simba ls [options] [PREFIX]

Lists the mutexes that are held: owner, for how long, how long the lease runs if it is not
renewed, and the token.

  simba ls                     all of them
  simba ls app/                those whose names begin with app/
  simba ls --json | jq -r 'select(.held_for_ms > 3600000) | .mutex'
                               held for more than an hour

Options:
  -a, --all     the free ones too
  --names       only the names, one per line
  --json        one object per line: mutex, state (held, evicted, free), owner, label,
                held_for_ms, lease_left_ms, token
  --store URL   where the mutexes live; default: SIMBA_STORE, else sqlite:
  --config FILE the file with settings; see simba config --help

Exit codes:
  0 listed, also where none is held    64 usage    69 store unavailable
)";

const char kShow[] = R"(simba show [options] MUTEX

Says who holds a mutex.

  simba show nightly
  simba show --json nightly | jq .owner
  until ! simba show nightly > /dev/null; do sleep 1; done

Options:
  --json        one object: mutex, state (held, evicted, free), owner, label, held_for_ms,
                lease_left_ms, token
  --store URL   where the mutex lives; default: SIMBA_STORE, else sqlite:
  --config FILE the file with settings; see simba config --help

Exit codes:
  0 held, or evicted with its lease still running    1 free    64 usage    69 store unavailable
)";

const char kWatch[] = R"(simba watch [options] MUTEX...

Prints who holds each mutex, and then each change of owner as it happens, until ^C. A term that
is shorter than it takes to look may be missed.

  simba watch nightly
  simba watch app/leader db/migration
  simba watch --json nightly | jq -r 'select(.state == "free") | .time'

Options:
  --json        one object per line: time (UTC), mutex, state (held, evicted, free), owner, label,
                token, before_owner, before_token
  --store URL   where the mutexes live; default: SIMBA_STORE, else sqlite:
  --config FILE the file with settings; see simba config --help

Exit codes:
  64 usage    69 store unavailable when it is first asked; later it is waited for
  128 + n: signal n ended it, as 130 for ^C
)";

const char kRelease[] = R"(simba release [options] MUTEX

Takes a mutex away from its owner, who hears of it with its next renewal and stops. Others enter
when the lease has run out, so that at no time two of them own it.

  simba release nightly                 in an emergency: the owner hangs, or should not run
  simba release --now nightly           when the owner is known to be dead: free at once
  simba release --token 17 nightly      only the term with this token, as simba show printed it

Options:
  --now         do not wait for the end of the lease. If the owner is alive after all, two own the
                mutex until it asks the store again
  --token N     only if the owner has this token
  --json        one object with the state afterwards, as simba show prints it, and evicted_owner,
                evicted_token, two_may_own (true after --now)
  --store URL   where the mutex lives; default: SIMBA_STORE, else sqlite:
  --config FILE the file with settings; see simba config --help

Exit codes:
  0 evicted    1 there was nobody to evict    64 usage    69 store unavailable
  75 the owner holds it still: try again
)";

const char kInit[] = R"(simba init [options]

Makes what the store needs before its first use: the table of MySQL, MariaDB and PostgreSQL, the
file of SQLite, the node of ZooKeeper, the collection of MongoDB. What is there already stays as it
is, and an older table gets what it lacks; a table of another shape is refused. Redis needs nothing.
Without it the first claim makes the same, where its user may.

  simba init --store mysql://dba@db/app
  simba init --print --store postgresql://db/app | psql postgresql://dba@db/app

Options:
  --print       change nothing and ask no server: print the statements, and as comments the
                privileges that contenders and observers need
  --json        one object: made (whether something was), summary, statements
  --store URL   which store; default: SIMBA_STORE, else sqlite:
  --config FILE the file with settings; see simba config --help

Exit codes:
  0 it is there    64 usage, or what is there cannot be used    69 store unavailable, or denied
)";

const char kDoctor[] = R"(simba doctor [options]

Looks whether a store is fit for use, a line for each thing: ok, warning or failed, and then what
to do. It makes nothing that is missing and leaves nothing behind.

  simba doctor
  simba doctor --store postgresql://app@db/app
  simba doctor --json | jq -r 'select(.verdict != "ok") | .text'

It looks at the lease (--ttl, --transition and whether answers come quickly enough for it), the
server and its version, what the store has there (table, file, node, collection), whether this
user may contend, how the clock of the store differs from ours, and whether who waits is told when
a mutex is free.

Options:
  --ttl DURATION         the lease that is to be used (10s)
  --transition DURATION  and how much later it is free for others (6s)
  --json        one object per line: check, verdict (ok, warning, failed), text
  --store URL   which store; default: SIMBA_STORE, else sqlite:
  --config FILE the file with settings; see simba config --help

Exit codes:
  0 nothing failed    1 something failed    64 usage
)";

const char kBench[] = R"(simba bench [options] [MUTEX]

Measures how fast the store is from here: locks and unlocks of a free mutex, and hand-overs between
two clients that wait for each other, both of this process. The mutex is simba-bench unless another
is named; like any mutex that was ever held it stays listed as free.

  simba bench
  simba bench --for 20s --store redis://cache
  simba bench --json | jq -r 'select(.measure == "hand_over") | .p99_us'

Options:
  --for DURATION         how long in all, half for each (5s)
  --ttl DURATION         the lease is renewed well within this (10s)
  --transition DURATION  and is free for others this much later (6s)
  --json        one object per line: measure (lock_unlock, hand_over), count, p50_us, p99_us, max_us
  --store URL   which store; default: SIMBA_STORE, else sqlite:
  --config FILE the file with settings; see simba config --help

Exit codes:
  0 measured    64 usage    69 store unavailable    75 somebody holds the mutex
)";

const char kTorture[] = R"(simba torture [options]

Attacks a store as it is here: processes contend for mutexes and are killed and stopped, their
connections are delayed, stalled, cut, reset, and lose replies. Each notes down what it believed; at
the end it is said whether two ever owned a mutex at once. Not for a server whose other users must
not notice: it costs what a few busy clients cost. The server itself is left alone.

  simba torture --store redis://localhost
  simba torture --for 10m --picture torture.svg --store 'postgresql://app@db/app?sslmode=disable'
  simba torture --seed 7 --json | jq .holds

Options:
  --for DURATION         faults for this long (30s), then calm, until each mutex has an owner
  --clients N            processes (4)
  --mutexes N            that each of them contends for (2); their names begin with simba-torture-
  --ttl DURATION         of the leases (2s): short ones, so SIMBA_TTL and the file do not count here
  --transition DURATION  likewise (1s)
  --seed N               of the dice; default: any, and printed
  --picture FILE         draw what happened, as SVG
  --json                 one object: holds, violations, faults, terms, longest_takeover_s, ...
  --store URL            what is attacked; default: SIMBA_STORE, else sqlite:
  --config FILE          the file with settings; see simba config --help

The network is attacked where the URL names one host, without TLS: a relay of simba stands between.

Exit codes:
  0 all promises held    1 broken, or an owner came too late    64 usage    69 store unavailable
)";

const char kConfig[] = R"(simba config [options]

Prints each setting with its value and where it comes from: a flag, a variable of the environment,
a file, or the default. Passwords are left out.

  simba config
  SIMBA_TTL=30s simba config --store postgresql://db/app
  simba config --json | jq -r 'select(.key == "ttl") | .value'

The file is the first of: --config FILE, SIMBA_CONFIG, ./simba.yaml,
$XDG_CONFIG_HOME/simba/simba.yaml (~/.config/simba/simba.yaml):

  simba:
    store: postgresql://app@db/app     # or store-file: /run/secrets/simba-url
    ttl: 10s
    transition: 6s
    jdbc:                              # for one kind of store: jdbc, redis, zookeeper, ...
      ttl: 30s

Variables: SIMBA_STORE, SIMBA_STORE_FILE, SIMBA_ID, SIMBA_TTL, SIMBA_TRANSITION,
SIMBA_INITIAL_DELAY, SIMBA_KILL_AFTER, SIMBA_CONFIG.

Options:
  --json                 one object per line: key, value, origin
  --config FILE          the file
  --store URL            and the others of simba run that are settings
  --id LABEL
  --ttl DURATION
  --transition DURATION
  --kill-after DURATION

Exit codes:
  0 printed    64 usage, or a setting that cannot work
)";

const char kCompletion[] = R"(simba completion SHELL

Prints a script that completes commands, options and the names of mutexes, for bash, zsh or fish.

  source <(simba completion bash)                    in ~/.bashrc
  simba completion zsh > ~/.zfunc/_simba             a directory in $fpath
  simba completion fish > ~/.config/fish/completions/simba.fish

Exit codes:
  0 printed    64 usage
)";

const char kVersion[] = R"(simba version [--json]

Prints the version of simba.

Options:
  --json        one object: name, version

Exit codes:
  0 printed    64 usage
)";

}  // namespace simba::cli::help
