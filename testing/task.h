#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace simba::testing {

// Something to do once. Held in place, because a simulation plans a hundred thousand of them each
// second and most of what std::function would cost is memory; one that is larger than `kRoom` is
// allocated.
template <std::size_t kRoom>
class Task {
 public:
  Task() = default;
  // Any function object is a task.
  // NOLINTBEGIN(*-explicit-constructor,*-forwarding-reference-overload)
  template <typename Body>
  requires(!std::is_same_v<std::decay_t<Body>, Task>) Task(Body&& body) {
    // NOLINTEND(*-explicit-constructor,*-forwarding-reference-overload)
    put(std::forward<Body>(body));
  }
  Task(Task&& other) noexcept { take(other); }
  Task& operator=(Task&& other) noexcept {
    if (this == &other) return *this;
    clear();
    take(other);
    return *this;
  }
  ~Task() { clear(); }

  // Another one, made in place.
  template <typename Body>
  void hold(Body&& body) {
    clear();
    if constexpr (std::is_same_v<std::decay_t<Body>, Task>) {
      take(body);
    } else {
      put(std::forward<Body>(body));
    }
  }
  void operator()() { how_->run(&room_); }
  void clear() {
    if (const How* how = std::exchange(how_, nullptr)) how->destroy(&room_);
  }

 private:
  struct How {
    void (*run)(void* body);
    void (*move)(void* from, void* to);  // and destroys it where it was
    void (*destroy)(void* body);
  };
  template <typename Held>
  static constexpr How kHow{[](void* body) { (*static_cast<Held*>(body))(); },
                            [](void* from, void* to) {
                              new (to) Held(std::move(*static_cast<Held*>(from)));
                              static_cast<Held*>(from)->~Held();
                            },
                            [](void* body) { static_cast<Held*>(body)->~Held(); }};

  template <typename Body>
  void put(Body&& body) {
    using Held = std::decay_t<Body>;
    if constexpr (sizeof(Held) <= kRoom && std::is_nothrow_move_constructible_v<Held>) {
      new (&room_) Held(std::forward<Body>(body));
      how_ = &kHow<Held>;
    } else {
      put([large = std::make_unique<Held>(std::forward<Body>(body))] { (*large)(); });
    }
  }
  void take(Task& other) {
    how_ = std::exchange(other.how_, nullptr);
    if (how_) how_->move(&other.room_, &room_);
  }

  const How* how_ = nullptr;
  alignas(std::max_align_t) std::byte room_[kRoom];
};

}  // namespace simba::testing
