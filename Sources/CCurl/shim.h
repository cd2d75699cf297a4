// libcurl with its variadic setters and getters as typed functions.
#ifndef MARTLET_CCURL_SHIM_H
#define MARTLET_CCURL_SHIM_H
#include <curl/curl.h>
#endif
