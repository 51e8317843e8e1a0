# An executor with virtual time and a store with faults to inject, for tests of users too.
simba_add_library(NAME fakes STATIC SOURCES fake_executor.cc faulty_store.cc DEPS simba::core)
