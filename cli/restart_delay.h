#pragma once

#include "simba/time.h"

namespace simba::cli {

// Before a program that has failed so many times in a row is started again: `first`, doubled at
// each failure after the first up to half a minute, and never less than `first`.
milliseconds restart_delay(milliseconds first, unsigned failures);

}  // namespace simba::cli
