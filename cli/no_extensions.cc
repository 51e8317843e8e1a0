// SQLite can load extensions, which a program without a dynamic loader cannot. Nobody asks it to.
// The linker puts this in place of dlopen(), about which it would warn.
extern "C" void* __wrap_dlopen(const char*, int) { return nullptr; }  // NOLINT
