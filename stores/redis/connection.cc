#include "stores/redis/connection.h"

#include <poll.h>

#include <array>

#include "simba/error.h"
#include "stores/redis/failure.h"

namespace simba::redis {
namespace {

constexpr std::size_t kChunk = 16'384;
// At one time: who is told more and more gets to look at the clock, and at what was asked.
constexpr int kMostChunks = 64;

}  // namespace

void Connection::fail(Errc code, const std::string& why) {
  shut_down();
  // Who is not let in has asked for nothing.
  const bool is_out = code == Errc::kMisconfigured;
  throw Error(code, where_ + ": " + why + (is_out ? "" : "; whether the server acted is unknown"));
}

void Connection::send(std::string_view bytes, LocalTime deadline, const kit::StopSignal* stop) {
  while (!bytes.empty()) {
    const Transport::Moved moved = send_some(bytes);
    bytes.remove_prefix(moved.count);
    if (moved.count == 0 && !kit::wait_for(descriptor(), moved.wants, deadline, stop)) {
      fail(Errc::kTimeout, "the server takes no more commands");
    }
  }
}

Transport::Moved Connection::send_some(std::string_view bytes) try {
  return transport_->write(bytes.data(), bytes.size());
} catch (const Error& error) {
  if (broken_) throw;
  fail(error.errc(), error.what());
} catch (...) {
  shut_down();
  throw;
}

void Connection::receive(Replies& replies) { receive_from(&Transport::read, replies); }

void Connection::await(Replies& replies, LocalTime deadline, const kit::StopSignal* stop,
                       short other) {
  // Short of time, the exact way: a nap may be longer than what is left.
  const bool is_short =
      deadline != LocalTime::max() && deadline - BootClock::now() < 2 * Transport::kNap;
  if (is_short || other != 0) {
    if (!wait_readable(deadline, stop, other)) return;
    return receive(replies);
  }
  receive_from(&Transport::wait_and_read, replies);
}

// The first bytes by `how`, and then what else is there, up to a megabyte.
void Connection::receive_from(Transport::Moved (Transport::*how)(char*, std::size_t),
                              Replies& replies) try {
  std::array<char, kChunk> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): read into
  Transport::Moved moved = (transport_.get()->*how)(buffer.data(), buffer.size());
  for (int chunks = 1; moved.count > 0; ++chunks) {
    reader_.feed({buffer.data(), moved.count}, replies);
    const bool is_all = moved.count < buffer.size() && !transport_->has_more();
    if (is_all || chunks == kMostChunks) return;
    moved = transport_->read(buffer.data(), buffer.size());
  }
  // What is encrypted does not wait by itself.
  if (moved.wants != 0 && how == &Transport::wait_and_read) {
    kit::wait_for(descriptor(), moved.wants, BootClock::now() + Transport::kNap);
  }
} catch (const Error& error) {
  if (broken_) throw;
  fail(error.errc(), error.what());
} catch (...) {  // an answer may be lost: those behind it would be taken for it
  shut_down();
  throw;
}

bool Connection::wait_readable(LocalTime deadline, const kit::StopSignal* stop, short other) const {
  if (transport_->has_more()) return true;
  return kit::wait_for(descriptor(), static_cast<short>(POLLIN | other), deadline, stop);
}

std::optional<Error> Connection::parting_words(Replies& replies) {
  std::array<char, kChunk> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): read into
  try {
    const Transport::Moved moved = transport_->read(buffer.data(), buffer.size());
    reader_.feed({buffer.data(), moved.count}, replies);
  } catch (const Error& error) {
    if (error.errc() == Errc::kMisconfigured)
      return Error(error.errc(), where_ + ": " + error.what());
  }
  return replies.empty() ? std::nullopt : refusal(replies.front(), where_);
}

Replies Connection::run(const Commands& commands, LocalTime deadline, const kit::StopSignal* stop) {
  Replies replies;
  try {
    send(commands.bytes(), deadline, stop);
    while (replies.size() < commands.count()) {
      const bool stopped = stop != nullptr && stop->is_requested();
      if (stopped || BootClock::now() >= deadline) {
        fail(Errc::kTimeout, "no answer within the deadline");
      }
      await(replies, deadline, stop);
    }
  } catch (const Error& error) {
    if (error.errc() != Errc::kUnreachable) throw;
    if (const auto why = parting_words(replies)) throw Error(*why);
    throw;
  }
  if (replies.size() > commands.count()) fail(Errc::kCorrupt, "more answers than questions");
  return replies;
}

}  // namespace simba::redis
