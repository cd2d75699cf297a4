#ifndef MARTLET_CZLIB_SHIM_H
#define MARTLET_CZLIB_SHIM_H
#include <zlib.h>

/* The macros that begin a stream, which pass the version that the header is of. */
static inline int martlet_deflate_begin(z_stream *stream, int level, int window, int memory) {
    return deflateInit2(stream, level, Z_DEFLATED, window, memory, Z_DEFAULT_STRATEGY);
}

static inline int martlet_inflate_begin(z_stream *stream, int window) {
    return inflateInit2(stream, window);
}
#endif
