// libargon2, with a wrapper for Argon2id on the calling thread.
#ifndef MARTLET_CARGON2_SHIM_H
#define MARTLET_CARGON2_SHIM_H

#include <argon2.h>
#include <string.h>

// argon2id_hash_raw would start a thread for every lane; concurrency is up to the caller.
static inline int martlet_argon2id(
    uint32_t memory, uint32_t passes, uint32_t lanes, const uint8_t *password, size_t password_size,
    const uint8_t *salt, size_t salt_size, uint8_t *tag, size_t tag_size) {
    argon2_context context;
    memset(&context, 0, sizeof context);
    context.out = tag;
    context.outlen = (uint32_t)tag_size;
    context.pwd = (uint8_t *)password;
    context.pwdlen = (uint32_t)password_size;
    context.salt = (uint8_t *)salt;
    context.saltlen = (uint32_t)salt_size;
    context.t_cost = passes;
    context.m_cost = memory;
    context.lanes = lanes;
    context.threads = 1;
    context.version = ARGON2_VERSION_13;
    context.flags = ARGON2_DEFAULT_FLAGS;
    return argon2id_ctx(&context);
}

#endif
