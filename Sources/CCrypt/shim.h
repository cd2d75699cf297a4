// libcrypt, with all intermediate data of a computation in one structure that can be wiped.
#ifndef MARTLET_CCRYPT_SHIM_H
#define MARTLET_CCRYPT_SHIM_H

#include <crypt.h>
#include <string.h>

// The maximum length of a passphrase in bytes.
enum { MARTLET_CRYPT_LONGEST_PHRASE = CRYPT_MAX_PASSPHRASE_SIZE - 1 };

// `data` must be zeroed. Returns NULL for input that does not fit or that the library does not accept.
static inline const char *martlet_crypt(
    struct crypt_data *data, const void *phrase, size_t phrase_size, const void *setting, size_t setting_size) {
    if (phrase_size >= sizeof data->input || setting_size >= sizeof data->setting) return NULL;
    if (phrase_size > 0) memcpy(data->input, phrase, phrase_size);
    if (setting_size > 0) memcpy(data->setting, setting, setting_size);
    return crypt_rn(data->input, data->setting, data, (int)sizeof *data);
}

static inline void martlet_wipe_crypt(struct crypt_data *data) { explicit_bzero(data, sizeof *data); }

#endif
