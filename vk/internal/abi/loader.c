#include "abi.h"

#include <stdio.h>
#include <string.h>

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

static void *library_open(const char *name) {
#if defined(_WIN32)
    return (void *)LoadLibraryA(name);
#else
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
#endif
}

static void *library_symbol(void *library, const char *name) {
#if defined(_WIN32)
    return (void *)GetProcAddress((HMODULE)library, name);
#else
    return dlsym(library, name);
#endif
}

static const char *library_error(void) {
#if defined(_WIN32)
    return "LoadLibrary failed";
#else
    const char *text = dlerror();
    return text ? text : "dlopen failed";
#endif
}

// The library stays open for the life of the process: drivers keep threads and
// thread-local destructors in it, and unloading beneath those is a crash at exit.
void *vc_loader_open(const char *names, char *error, size_t error_size, char *found, size_t found_size) {
    size_t used = 0;
    error[0] = found[0] = 0;
    for (const char *name = names; *name; name += strlen(name) + 1) {
        void *library = library_open(name);
        void *symbol = library ? library_symbol(library, "vkGetInstanceProcAddr") : NULL;
        if (symbol) {
            snprintf(found, found_size, "%s", name);
            return symbol;
        }
        int n = snprintf(error + used, error_size - used, "%s%s", used ? "; " : "", library ? "no vkGetInstanceProcAddr in it" : library_error());
        if (n > 0) used += (size_t)n < error_size - used ? (size_t)n : error_size - used - 1;
    }
    return NULL;
}
