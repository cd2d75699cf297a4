// libcurl, with typed functions for its variadic setters and getters.
#ifndef MARTLET_CCURL_SHIM_H
#define MARTLET_CCURL_SHIM_H
#include <curl/curl.h>
#include <string.h>

typedef size_t (*martlet_curl_sink)(char *, size_t, size_t, void *);
typedef int (*martlet_curl_gate)(void *, char *, char *, int, int);
typedef int (*martlet_curl_progress)(void *, curl_off_t, curl_off_t, curl_off_t, curl_off_t);

static inline CURLcode martlet_curl_start(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }
static inline CURLcode martlet_curl_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode martlet_curl_set_size(CURL *easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode martlet_curl_set_text(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode martlet_curl_set_bytes(CURL *easy, CURLoption option, const void *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode martlet_curl_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode martlet_curl_set_body_sink(CURL *easy, martlet_curl_sink sink, void *context) {
    CURLcode status = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, sink);
    return status != CURLE_OK ? status : curl_easy_setopt(easy, CURLOPT_WRITEDATA, context);
}
static inline CURLcode martlet_curl_set_head_sink(CURL *easy, martlet_curl_sink sink, void *context) {
    CURLcode status = curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, sink);
    return status != CURLE_OK ? status : curl_easy_setopt(easy, CURLOPT_HEADERDATA, context);
}
static inline CURLcode martlet_curl_set_gate(CURL *easy, martlet_curl_gate gate, void *context) {
    CURLcode status = curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, gate);
    return status != CURLE_OK ? status : curl_easy_setopt(easy, CURLOPT_PREREQDATA, context);
}
static inline CURLcode martlet_curl_set_source(CURL *easy, martlet_curl_sink source, void *context) {
    CURLcode status = curl_easy_setopt(easy, CURLOPT_READFUNCTION, source);
    return status != CURLE_OK ? status : curl_easy_setopt(easy, CURLOPT_READDATA, context);
}
static inline CURLcode martlet_curl_set_progress(CURL *easy, martlet_curl_progress progress, void *context) {
    CURLcode status = curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, progress);
    return status != CURLE_OK ? status : curl_easy_setopt(easy, CURLOPT_XFERINFODATA, context);
}
static inline long martlet_curl_status(CURL *easy) {
    long status = 0;
    return curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK ? status : 0;
}
// The status by which a proxy responded to CONNECT; 0 without one.
static inline long martlet_curl_connect_status(CURL *easy) {
    long status = 0;
    return curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &status) == CURLE_OK ? status : 0;
}
// In seconds; 0 without the header.
static inline curl_off_t martlet_curl_retry_after(CURL *easy) {
    curl_off_t seconds = 0;
    return curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK ? seconds : 0;
}
// CURL_HTTP_VERSION_… of the response; 0 without one.
static inline long martlet_curl_http_version(CURL *easy) {
    long version = 0;
    return curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version) == CURLE_OK ? version : 0;
}
// Why the last connect failed; NULL if it did not.
static inline const char *martlet_curl_connect_error(CURL *easy) {
    long number = 0;
    CURLcode status = curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &number);
    return status == CURLE_OK && number != 0 ? strerror((int)number) : NULL;
}
static inline CURLMcode martlet_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}
// The result of a finished transfer is a member of a union.
static inline CURLcode martlet_curl_result(const CURLMsg *message) { return message->data.result; }
#endif
