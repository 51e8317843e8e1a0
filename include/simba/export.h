#pragma once

// Marks what a shared build of the library shows to its users; everything else is hidden.
#define SIMBA_EXPORT __attribute__((visibility("default")))
