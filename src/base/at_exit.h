// What must happen before a process ends.
#pragma once

namespace reprise {

// f runs when the process begins to end. Where the main thread ends it, which is where the library
// was loaded, that is before any static object is destroyed, also one that a library makes while
// this runs: other threads may be inside of that library, and f waits for them. Where another thread
// calls exit, f runs among the functions of atexit. May run several times. To be called by
// initialisers of static objects.
int at_exit(void (*f)());

}  // namespace reprise
