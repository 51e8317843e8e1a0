#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <list>
#include <thread>

#include "simba/locker.h"
#include "stores/sqlite/schema.h"
#include "stores/sqlite/sqlite_fixture.h"

namespace simba::sqlite {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SqliteFile : public SqliteTest {
 protected:
  std::string why_not_opened(const fs::path& path) {
    return error_of([&] { open({.file = path}, fake_host()); });
  }
  void run_sql(const char* sql) const {
    sqlite3* db = nullptr;
    sqlite3_open(file.c_str(), &db);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, &error), SQLITE_OK) << error;
    sqlite3_close(db);
  }
  static unsigned mode_of(const fs::path& path) {
    struct stat info {};
    stat(path.c_str(), &info);
    return info.st_mode & 07777U;
  }
  void remove_file() const {
    for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(file.string() + suffix);
  }
};

TEST_F(SqliteFile, IsPrivateWithEverythingBesideIt) {
  umask(0);
  const auto store = open_store();
  umask(022);
  take(*store, "report", "a~1");
  EXPECT_EQ(mode_of(file), 0600U);
  EXPECT_EQ(mode_of(file.string() + "-wal"), 0600U);
  EXPECT_EQ(mode_of(file.string() + "-shm"), 0600U);
  EXPECT_EQ(mode_of(file.string() + "-bell"), 0700U);
}

TEST_F(SqliteFile, OutlivesItsProcesses) {
  Token token = 0;
  {
    const auto store = open_store();
    token = take(*store, "report", "a~1").owner.token;
  }
  EXPECT_EQ(observe(*open_store(), "report").owner.token, token);
}

TEST_F(SqliteFile, OfWhichTheParentsAreMissingIsMadeOnlyByDefault) {
  EXPECT_THAT(why_not_opened(directory / "no/where/locks.db"), HasSubstr("create the directory"));
  const std::string answer = as_ordinary_user(directory, [&]() -> std::string {
    setenv("XDG_STATE_HOME", (directory / "x/state").c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    open({}, fake_host());
    return std::to_string(mode_of(directory / "x/state/simba"));
  });
  EXPECT_EQ(answer, std::to_string(0700));
}

TEST_F(SqliteFile, ThatCannotBeMadeByDefaultMayBeNamed) {
  const std::string answer = as_ordinary_user(directory, [&]() -> std::string {
    fs::create_directory(directory / "state");
    fs::permissions(directory / "state", fs::perms{0500});
    setenv("XDG_STATE_HOME", (directory / "state").c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    return why_not_opened({});
  });
  EXPECT_THAT(answer, AllOf(HasSubstr("create the directory"), HasSubstr("sqlite:PATH")));
}

TEST_F(SqliteFile, InASharedDirectoryIsRefused) {
  EXPECT_THAT(why_not_opened("/tmp/simba-test-locks.db"), HasSubstr("writable by everybody"));
  fs::permissions(directory, fs::perms::all);
  EXPECT_THAT(why_not_opened(file), HasSubstr("mkdir -m 700"));
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(SqliteFile, ThroughALinkIntoASharedDirectoryIsRefused) {
  fs::create_directory(directory / "shared");
  fs::permissions(directory / "shared", fs::perms::all);
  std::ofstream(directory / "shared/locks.db").close();
  fs::permissions(directory / "shared/locks.db", fs::perms{0600});
  fs::create_symlink(directory / "shared/locks.db", file);
  EXPECT_THAT(why_not_opened(file), HasSubstr("writable by everybody"));
}

// Each name has a log and a memory of its own: two could own one mutex.
TEST_F(SqliteFile, OfTwoNamesIsRefused) {
  take(*open_store(), "report", "a~1");
  fs::create_hard_link(file, directory / "other.db");
  EXPECT_THAT(why_not_opened(directory / "other.db"), HasSubstr("has 2 names (hard links)"));
  EXPECT_THAT(why_not_opened(file), HasSubstr("-samefile " + file.string()));
  fs::remove(directory / "other.db");
  EXPECT_EQ(why_not_opened(file), "none");
}

// As old profiles for containers, which do not know them.
bool bar_newer_calls(int error) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statx, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 439, 0, 1),  // faccessat2
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{std::size(rules), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// As into a container, without its directory.
TEST_F(SqliteFile, ThatIsMountedByItselfIsRefused) {
  const auto mounted = [&]() -> std::string {
    take(*open_store(), "report", "a~1");
    fs::create_directory(directory / "inside");
    fs::permissions(directory / "inside", fs::perms::owner_all);
    const fs::path inside = directory / "inside" / file.filename();
    std::ofstream(inside).close();
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount(file.c_str(), inside.c_str(), nullptr, MS_BIND, nullptr) != 0) {
      return "cannot mount";
    }
    const std::string there = why_not_opened(inside);
    if (umount(inside.c_str()) != 0 ||
        mount(directory.c_str(), (directory / "inside").c_str(), nullptr, MS_BIND, nullptr) != 0) {
      return "cannot mount";
    }
    const auto with_its_directory = open({.file = inside}, fake_host());
    return there + "; beside it " + observe(*with_its_directory, "report").owner.id + " is seen";
  };
  for (const bool is_barred : {false, true}) {
    file = directory / (is_barred ? "a name of words" : "locks.db");
    const std::string answer = in_child([&]() -> std::string {
      return is_barred && !bar_newer_calls(EPERM) ? "cannot bar" : mounted();
    });
    if (answer.starts_with("cannot")) GTEST_SKIP() << "needs to mount a file, and seccomp";
    EXPECT_THAT(answer,
                AllOf(HasSubstr("is mounted by itself"), HasSubstr("beside it a~1 is seen")));
  }
}

TEST_F(SqliteFile, IsOpenedAlsoWhereAContainerKnowsNoNewerSystemCalls) {
  for (const int error : {EPERM, ENOSYS}) {
    fs::remove(directory / "other.db");
    const std::string answer = in_child([&]() -> std::string {
      if (!bar_newer_calls(error)) return "cannot bar";
      struct statx info {};
      if (statx(AT_FDCWD, "/", 0, STATX_NLINK, &info) == 0 && error == EPERM) return "not barred";
      const std::string owner = take(*open_store(), "report", "a~1").owner.id;
      fs::create_hard_link(file, directory / "other.db");
      return owner + " owns; " + why_not_opened(file);
    });
    if (answer == "cannot bar") GTEST_SKIP() << "needs seccomp";
    EXPECT_THAT(answer, AllOf(StartsWith("a~1 owns"), HasSubstr("has 2 names (hard links)")));
  }
}

TEST_F(SqliteFile, ThatOthersCouldReadIsRefused) {
  open_store();
  fs::permissions(file, fs::perms{0640});
  EXPECT_THAT(why_not_opened(file), AllOf(HasSubstr("mode 0640"), HasSubstr("chmod 600")));
}

TEST_F(SqliteFile, OfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  open_store();
  ASSERT_EQ(chown(file.c_str(), 12345, 12345), 0);
  EXPECT_THAT(why_not_opened(file), HasSubstr("belongs to user 12345"));
}

TEST_F(SqliteFile, OnAnUnknownFileSystemIsRefused) {
  EXPECT_THAT(why_not_opened("/proc/locks.db"),
              AllOf(HasSubstr("0x9fa0"), HasSubstr("ext4, xfs, btrfs, f2fs, zfs, tmpfs, overlay")));
}

TEST_F(SqliteFile, ThatIsADirectoryIsRefused) {
  fs::create_directory(file);
  EXPECT_THAT(why_not_opened(file), HasSubstr("not a regular file"));
  EXPECT_THAT(why_not_opened(directory.string() + "/"), HasSubstr("names a directory"));
}

TEST_F(SqliteFile, BelowADirectoryThatIsClosedToUsIsDenied) {
  fs::create_directory(directory / "closed");
  fs::permissions(directory / "closed", fs::perms::none);
  const std::string answer = as_ordinary_user(directory, [&] {
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    setenv("XDG_STATE_HOME", (directory / "closed/state").c_str(), 1);
    return why_not_opened({});
  });
  fs::permissions(directory / "closed", fs::perms::owner_all);
  EXPECT_THAT(answer, AllOf(StartsWith("the store denied"), HasSubstr("closed/state")));
}

TEST_F(SqliteFile, WithoutDescriptorsIsOutOfReachAndNotDenied) {
  const std::string answer = in_child([&]() -> std::string {
    take(*open_store(), "report", "a~1");
    const rlimit few{64, 64};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) return "cannot be limited";
    std::vector<int> all;
    for (int one = 0; (one = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) all.push_back(one);
    std::string errors;
    for (; !all.empty(); all.pop_back()) {
      std::string error = why_not_opened(file);
      if (error == "none") return errors;
      if (!error.starts_with("the store cannot be reached")) return error;
      errors += error + '\n';
      close(all.back());
    }
    return "never opened";
  });
  EXPECT_THAT(answer, AllOf(StartsWith("the store cannot be reached"), HasSubstr("ulimit -n")));
}

TEST_F(SqliteFile, InADirectoryWithoutWritePermissionIsDenied) {
  const std::string answer = as_ordinary_user(directory, [&] {
    fs::permissions(directory, fs::perms{0500});
    return why_not_opened(file);
  });
  EXPECT_THAT(answer, AllOf(StartsWith("the store denied"), HasSubstr("locks.db")));
}

TEST_F(SqliteFile, ThatCanOnlyBeReadIsObservedButNotTaken) {
  take(*open_store(), "report", "a~1");
  const std::string answer = as_ordinary_user(directory, [&] {
    fs::permissions(file, fs::perms{0400});
    fs::permissions(directory, fs::perms{0500});
    const auto store = open_store();
    const std::string id = observe(*store, "report").owner.id;
    return id + " " + std::to_string(store->list("", {}, 9, soon()).size()) + " " +
           error_of([&] { take(*store, "report", "b~1"); });
  });
  EXPECT_THAT(answer, AllOf(StartsWith("a~1 1 the store denied"), HasSubstr("not contend")));
}

TEST_F(SqliteFile, ThatWasDeletedEndsEverythingOnceAndIsMadeAnew) {
  const auto store = open_store();
  const Token token = take(*store, "report", "a~1").owner.token;
  remove_file();
  EXPECT_THAT(error_of([&] { renew(*store, "report", "a~1", token); }),
              StartsWith("the store was replaced"));
  EXPECT_EQ(renew(*store, "report", "a~1", token).owner, MutexOwner::none());
  fake_wall_us += 1;
  EXPECT_GT(take(*store, "report", "b~1").owner.token, token);
}

TEST_F(SqliteFile, ThatWasDeletedEndsAReleaseToo) {
  const auto store = open_store();
  take(*store, "report", "a~1");
  remove_file();
  EXPECT_THAT(error_of([&] { release(*store, "report", "a~1"); }),
              StartsWith("the store was replaced"));
}

TEST_F(SqliteFile, ThatWasDeletedIsNoticedAlsoLongAfterTheLastChangeOfTheDirectory) {
  const auto store = open_store();
  const Token token = take(*store, "report", "a~1").owner.token;
  // Until the times of the directory are old enough to be trusted.
  for (const LocalTime end = local_now() + 60ms; local_now() < end;) {
    renew(*store, "report", "a~1", token);
  }
  remove_file();
  EXPECT_THAT(error_of([&] { renew(*store, "report", "a~1", token); }),
              StartsWith("the store was replaced"));
}

TEST_F(SqliteFile, ThatWasDeletedIsThatWhateverElseGoesWrong) {
  const auto store = open_store();
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  remove_file();
  const Claim claim{"report", "a~1", 0, 0, 10s, 6s};
  EXPECT_THAT(error_of([&] {
                store->contend({&claim, 1}, local_now() + 20ms);
              }),
              StartsWith("the store was replaced"));
  sqlite3_close(other);
}

TEST_F(SqliteFile, ThatWasDeletedEndsAllTermsOfTheProcessWithItsNextCall) {
  Client client(open_sqlite(options()));
  std::list<SimbaLocker> locks;
  std::vector<Term> terms;
  for (const char* mutex : {"report", "invoice", "backup"}) {
    locks.emplace_back(client, mutex).lock();
    terms.push_back(locks.back().term());
  }
  remove_file();
  EXPECT_THAT(error_of([&] { client.observe("somebody else's"); }),
              StartsWith("the store was replaced"));
  for (const Term& term : terms) {
    EXPECT_FALSE(term.is_owner());
    EXPECT_EQ(term.loss().reason, LossReason::kReplaced);
  }
}

TEST_F(SqliteFile, ThatWasReplacedByAnotherIsTheOtherFromThenOn) {
  const auto store = open_store();
  take(*store, "report", "a~1");
  const fs::path other = directory / "other.db";
  take(*open({.file = other}, fake_host()), "report", "b~1");
  remove_file();
  fs::remove(other.string() + "-shm");
  fs::rename(other.string() + "-wal", file.string() + "-wal");
  fs::rename(other, file);
  EXPECT_THAT(error_of([&] { observe(*store, "report"); }), StartsWith("the store was replaced"));
  EXPECT_EQ(observe(*store, "report").owner.id, "b~1");
}

TEST_F(SqliteFile, WhoseDirectoryWasMovedIsReplaced) {
  const auto store = open_store();
  take(*store, "report", "a~1");
  const fs::path away = directory.string() + "-away";
  fs::rename(directory, away);
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }),
              StartsWith("the store was replaced"));
  fs::rename(away, directory);
  EXPECT_EQ(take(*store, "report", "a~1").owner.id, "a~1");
}

// The directory of the file itself does not change.
TEST_F(SqliteFile, WhoseLinkLeadsElsewhereIsReplacedAtTheNextCall) {
  for (const char* name : {"one", "two"}) {
    fs::create_directory(directory / name);
    fs::permissions(directory / name, fs::perms{0700});
  }
  fs::create_directory_symlink(directory / "one", directory / "link");
  SqliteOptions linked = options();
  linked.file = directory / "link/locks.db";
  const auto store = open(linked, fake_host());
  take(*store, "report", "a~1");
  // Until the directory's times are old enough to be relied on.
  const auto age = [&] {
    return fs::file_time_type::clock::now() - fs::last_write_time(directory / "one");
  };
  while (age() < 2200ms) std::this_thread::sleep_for(20ms);
  take(*store, "report", "a~1");
  fs::create_directory_symlink(directory / "two", directory / "new");
  fs::rename(directory / "new", directory / "link");
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }),
              StartsWith("the store was replaced"));
}

// Nor does the directory here, nor the one above it.
TEST_F(SqliteFile, WhichIsMovedWithADirectoryAboveIsReplacedAfterATenthOfASecond) {
  fs::create_directories(directory / "above/its own");
  file = directory / "above/its own/locks.db";
  fs::permissions(file.parent_path(), fs::perms{0700});
  const auto store = open_store();
  const Token token = take(*store, "report", "a~1").owner.token;
  // Until the directory's times are old enough to be relied on.
  for (const LocalTime end = local_now() + 60ms; local_now() < end;) {
    renew(*store, "report", "a~1", token);
  }
  fs::rename(directory / "above", directory / "elsewhere");
  pass(100ms);
  EXPECT_THAT(error_of([&] { renew(*store, "report", "a~1", token); }),
              StartsWith("the store was replaced"));
}

TEST_F(SqliteFile, WhoseLogWasDeletedIsReplacedToo) {
  const auto store = open_store();
  take(*store, "report", "a~1");
  fs::remove(file.string() + "-wal");
  EXPECT_THAT(error_of([&] { take(*store, "report", "b~1"); }),
              StartsWith("the store was replaced"));
  EXPECT_EQ(error_of([&] { take(*store, "report", "b~1"); }), "none");
}

TEST_F(SqliteFile, WhoseSharedMemoryWasDeletedIsReplacedToo) {
  const auto store = open_store();
  take(*store, "report", "a~1");
  fs::remove(file.string() + "-shm");
  EXPECT_THAT(error_of([&] { take(*store, "report", "b~1"); }),
              StartsWith("the store was replaced"));
}

TEST_F(SqliteFile, WhoseDeletedMemoryIsStillInUseHereIsNotJoined) {
  const auto store = open_store();
  sqlite3* other = nullptr;  // somebody else's, in this process
  ASSERT_EQ(sqlite3_open(file.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "SELECT * FROM simba_mutex", nullptr, nullptr, nullptr), SQLITE_OK);
  fs::remove(file.string() + "-shm");
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(error_of([&] { take(*store, "report", "b~1"); }),
                StartsWith("the store was replaced"));
  }
  sqlite3_close(other);
  EXPECT_EQ(take(*store, "report", "b~1").owner.id, "b~1");
}

TEST_F(SqliteFile, ThatIsNoDatabaseIsCorrupt) {
  std::ofstream(file) << std::string(5'000, 'x');
  fs::permissions(file, fs::perms{0600});
  EXPECT_THAT(why_not_opened(file),
              AllOf(HasSubstr("makes no sense"), HasSubstr("locks.db"), HasSubstr("damaged")));
  EXPECT_EQ(fs::file_size(file), 5'000U);
}

TEST_F(SqliteFile, WithBrokenPagesIsCorrupt) {
  {
    const auto store = open_store();
    for (int i = 0; i < 100; ++i) take(*store, "mutex-" + std::to_string(i), "a~1");
  }
  run_sql("PRAGMA wal_checkpoint(TRUNCATE)");
  {
    std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(1'024);
    out << std::string(20'000, '\xff');
  }
  EXPECT_THAT(error_of([&] { take(*open_store(), "mutex-1", "b~1"); }), HasSubstr("damaged"));
}

TEST_F(SqliteFile, OfAnotherProgramIsLeftAlone) {
  run_sql("CREATE TABLE customers (name)");
  fs::permissions(file, fs::perms{0600});
  EXPECT_THAT(why_not_opened(file), HasSubstr("another program"));
}

TEST_F(SqliteFile, OfANewerVersionIsRefused) {
  open_store();
  run_sql("PRAGMA user_version = 7");
  EXPECT_THAT(why_not_opened(file), AllOf(HasSubstr("version 7"), HasSubstr("update the library")));
}

TEST_F(SqliteFile, WhoseTableIsGoneIsAnErrorNotAnAnswer) {
  open_store();
  run_sql("DROP TABLE simba_mutex");
  const auto store = open_store();
  EXPECT_THAT(error_of([&] { take(*store, "report", "a~1"); }), HasSubstr("no such table"));
}

TEST_F(SqliteFile, OnAFullDiskChangesNothingAndGoesOnWhenThereIsSpace) {
  const std::string answer = in_child([&]() -> std::string {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", directory.c_str(), "tmpfs", 0, "size=512k,mode=700") != 0) {
      return "cannot mount";
    }
    const auto store = open_store();
    const Token token = take(*store, "kept", "a~1").owner.token;
    std::ofstream filler(directory / "filler", std::ios::binary);
    while (filler << std::string(4'096, 'f') && filler.flush()) {
    }
    std::string error = "none";
    for (int i = 0; i < 10'000 && error == "none"; ++i) {
      error = error_of([&] { take(*store, "mutex-" + std::to_string(i), "a~1"); });
    }
    const Observation kept = observe(*store, "kept");
    fs::remove(directory / "filler");
    filler.close();
    const bool renewed = renew(*store, "kept", "a~1", token).owner.id == "a~1";
    const bool taken = take(*store, "another", "a~1").owner.id == "a~1";
    return error + (kept.owner.token == token && renewed && taken ? " all kept" : " lost");
  });
  if (answer == "cannot mount") GTEST_SKIP() << "needs to mount a small tmpfs";
  EXPECT_THAT(answer, AllOf(StartsWith("the store cannot be reached"), HasSubstr("disk is full"),
                            HasSubstr("all kept")));
}

TEST_F(SqliteFile, OnAnOverlayIsAsGoodAsWhatTheOverlayWritesTo) {
  const auto opened_on = [&](const char* below) {
    return in_child([&]() -> std::string {
      const std::string base = directory.string() + "/base of it",
                        top = directory.string() + "/top";
      const std::string layers =
          "lowerdir=" + top + ",upperdir=" + base + "/upper,workdir=" + base + "/work";
      if (unshare(CLONE_NEWNS) != 0 ||
          mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          !fs::create_directory(base) || !fs::create_directory(top) ||
          mount(below, base.c_str(), below, 0, "mode=700") != 0 ||
          !fs::create_directory(base + "/upper") || !fs::create_directory(base + "/work") ||
          mount("overlay", top.c_str(), "overlay", 0, layers.c_str()) != 0) {
        return "cannot mount";
      }
      fs::permissions(top, fs::perms::owner_all);
      return why_not_opened(fs::path(top) / "locks.db");
    });
  };
  const std::string on_tmpfs = opened_on("tmpfs");
  fs::remove(directory / "base of it");
  fs::remove(directory / "top");
  const std::string on_ramfs = opened_on("ramfs");
  if (on_tmpfs == "cannot mount") GTEST_SKIP() << "needs to mount an overlay";
  EXPECT_EQ(on_tmpfs, "none");
  EXPECT_THAT(on_ramfs, HasSubstr("an overlay that writes to a file system of type 0x858458f6"));
}

TEST_F(SqliteFile, NeedsABootIdAndAClockThatIsNotShifted) {
  std::ofstream(directory / "shifted") << "monotonic 0 0\nboottime 86400 0\n";
  std::ofstream(directory / "empty").close();
  EXPECT_THAT(error_of([&] { Host::local({.boot_id = directory / "empty"}); }),
              HasSubstr("boot id cannot be read"));
  EXPECT_THAT(error_of([&] { Host::local({.boot_id = directory / "missing"}); }),
              HasSubstr("boot id cannot be read"));
  std::ofstream(directory / "own") << "11111111-2222-3333-4444-555555555555\n";
  EXPECT_THAT(error_of([&] { Host::local({.boot_id = directory / "own"}); }),
              HasSubstr("is not the kernel's"));
  EXPECT_THAT(error_of([&] { Host::local({.time_offsets = directory / "shifted"}); }),
              HasSubstr("shifts CLOCK_BOOTTIME by 86400 s"));
  EXPECT_NO_THROW(Host::local({.time_offsets = directory / "missing"}));
  EXPECT_GE(Host::local().boot_id.size(), 32U);
}

// As LXC and systemd-nspawn do to each container.
TEST_F(SqliteFile, IsRefusedWhereTheContainerHasABootIdOfItsOwn) {
  const std::string answer = in_child([&]() -> std::string {
    const fs::path own = directory / "own";
    std::ofstream(own) << "11111111-2222-3333-4444-555555555555\n";
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount(own.c_str(), HostFiles{}.boot_id.c_str(), nullptr, MS_BIND, nullptr) != 0) {
      return "cannot mount";
    }
    return error_of([&] { open_sqlite(options()); });
  });
  if (answer == "cannot mount") GTEST_SKIP() << "needs to mount a file";
  EXPECT_THAT(answer, HasSubstr("umount /proc/sys/kernel/random/boot_id"));
}

}  // namespace
}  // namespace simba::sqlite
