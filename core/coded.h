#pragma once

#include <system_error>

#include "simba/error.h"

namespace simba::core {

// What a call returns; where it throws an Error, nothing and that error's code.
template <class Call>
auto coded(std::error_code& error, Call call) -> decltype(call()) {
  error.clear();
  try {
    return call();
  } catch (const Error& trouble) {
    error = trouble.code();
    return {};
  }
}

}  // namespace simba::core
