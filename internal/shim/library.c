// Apart from the rest of the shim, which spells the functions it stands before by itself.
#include "abi.h"
#include "shim.h"

#include <string.h>

// The library's functions that return a VkResult are told from the others by the text of their type.
const char *sh_library_functions(void) {
    static char list[4096];
    if (*list) return list;
    size_t at = 0;
#define F(name, result, args)                                                  \
    if (!strcmp(#result, "VcResult"))                                            \
        for (const char *p = "vk" #name; at + 2 < sizeof list; p++) {          \
            list[at++] = *p;                                                   \
            if (!*p) break;                                                    \
        }
    VC_DEVICE_FUNCTIONS(F)
#undef F
    return list;
}
