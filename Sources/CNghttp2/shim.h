// nghttp2: HTTP/2 framing, HPACK, flow control and stream states (RFC 9113, RFC 7541).
#ifndef MARTLET_CNGHTTP2_SHIM_H
#define MARTLET_CNGHTTP2_SHIM_H

#include <nghttp2/nghttp2.h>

#endif
