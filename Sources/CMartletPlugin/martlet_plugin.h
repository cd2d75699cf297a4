// What a plugin in a shared library says about itself. A Swift plugin does not need to know this file:
// MartletPlugin.export, of the module MartletProvider, uses it.
#ifndef MARTLET_PLUGIN_H
#define MARTLET_PLUGIN_H

#include <stdint.h>

// The version of the public API that this header belongs to: MartletProvider.version.
#ifndef MARTLET_API_MAJOR
#define MARTLET_API_MAJOR 1
#endif
#ifndef MARTLET_API_MINOR
#define MARTLET_API_MINOR 0
#endif

// The SHA-256 of the listing of every public symbol, in lowercase hexadecimal; `Tests/API/run --update` writes it.
#ifndef MARTLET_API_STAMP
#define MARTLET_API_STAMP "8dea9d5b5d330b3c63a64a6056e8a251a128546948e7c85636ee1ac786e8dd7a"
#endif

// The compiler that reads this header: in a Swift module, the one of the Swift toolchain.
#ifndef MARTLET_COMPILER
#ifdef __clang_version__
#define MARTLET_COMPILER __clang_version__
#else
#define MARTLET_COMPILER "not a Swift toolchain"
#endif
#endif

// What the symbol `martlet_plugin` of a library returns.
struct martlet_plugin_info {
    // The size of this structure; later versions append members.
    uint64_t size;
    uint32_t api_major;
    uint32_t api_minor;
    const char *compiler;
    const char *stamp;
    // Adds the providers to a registry, which is an opaque pointer to C. Called once.
    void (*register_providers)(const struct martlet_plugin_info *info, void *registry);
};

// The one symbol that a library exports.
const struct martlet_plugin_info *martlet_plugin(void);

// The same facts as a note of the ELF file (type 1 of "Martlet"), so that it can be inspected without running its code.
// Texts end with NUL and are filled with NULs.
struct martlet_plugin_note {
    uint32_t name_size;
    uint32_t description_size;
    uint32_t type;
    char name[8];
    uint32_t api_major;
    uint32_t api_minor;
    char stamp[68];
    char compiler[160];
};

// The texts of a note, which C arrays are not in Swift.
static inline const char *martlet_plugin_note_stamp(const struct martlet_plugin_note *note) { return note->stamp; }
static inline const char *martlet_plugin_note_compiler(const struct martlet_plugin_note *note) {
    return note->compiler;
}

// What the program that includes this header was built as, to compare libraries with.
static inline const char *martlet_plugin_host_stamp(void) { return MARTLET_API_STAMP; }
static inline const char *martlet_plugin_host_compiler(void) { return MARTLET_COMPILER; }

// Define this where the note is not wanted.
#ifndef MARTLET_PLUGIN_NO_NOTE
__attribute__((section(".note.martlet"), used, aligned(4))) static const struct martlet_plugin_note martlet_plugin_note_facts = {
    8, sizeof(struct martlet_plugin_note) - 20, 1, "Martlet", MARTLET_API_MAJOR, MARTLET_API_MINOR, MARTLET_API_STAMP,
    MARTLET_COMPILER,
};

// The note of the library that this is compiled into.
static inline const struct martlet_plugin_note *martlet_plugin_note(void) { return &martlet_plugin_note_facts; }
#endif

#endif
