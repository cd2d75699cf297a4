// OpenSSL 3, with functions for macros that Swift does not import.
#ifndef MARTLET_COPENSSL_SHIM_H
#define MARTLET_COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// EVP_PKEY_Q_keygen is variadic.
static inline EVP_PKEY *martlet_generate_rsa(size_t bits) { return EVP_PKEY_Q_keygen(NULL, NULL, "RSA", bits); }
static inline EVP_PKEY *martlet_generate_ec(const char *curve) { return EVP_PKEY_Q_keygen(NULL, NULL, "EC", curve); }

// A parameter builder stores pointers to the names: they must be C literals, not Swift strings bridged for one call.
static inline int martlet_push_rsa(OSSL_PARAM_BLD *builder, const BIGNUM *modulus, const BIGNUM *exponent) {
    return OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, modulus) == 1
        && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, exponent) == 1;
}
static inline int martlet_push_ec(OSSL_PARAM_BLD *builder, int bits, const unsigned char *point, size_t size) {
    const char *curve = bits == 256 ? "P-256" : bits == 384 ? "P-384" : "P-521";
    return OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, curve, 0) == 1
        && OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, size) == 1;
}

// The selection is a macro of shifted flags.
static inline int martlet_public_key_from_data(EVP_PKEY_CTX *context, EVP_PKEY **key, OSSL_PARAM *parameters) {
    return EVP_PKEY_fromdata(context, key, EVP_PKEY_PUBLIC_KEY, parameters);
}

static inline int martlet_tls_set_min_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}
static inline int martlet_tls_set_server_name(SSL *ssl, const char *name) {
    return (int)SSL_set_tlsext_host_name(ssl, name);
}
// Settings of clients and servers: empty buffers are freed, and compression and renegotiation are off.
static inline void martlet_tls_set_lean_mode(SSL_CTX *context) {
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
}
static inline void martlet_tls_set_server_preference(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
}
static inline void martlet_tls_keep_no_sessions(SSL_CTX *context) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}
static inline void martlet_tls_hand_over_sessions(SSL_CTX *context) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
}
static inline void martlet_tls_set_maximum_chain(SSL_CTX *context, long bytes) {
    SSL_CTX_set_max_cert_list(context, bytes);
}
static inline int martlet_tls_set_groups(SSL_CTX *context, const char *names) {
    return (int)SSL_CTX_set1_groups_list(context, names);
}
static inline void martlet_tls_set_server_name_callback(SSL_CTX *context, int (*callback)(SSL *, int *, void *)) {
    SSL_CTX_set_tlsext_servername_callback(context, callback);
}
static inline int martlet_tls_is_resumed(SSL *ssl) { return SSL_session_reused(ssl); }
static inline int martlet_tls_error_reason(unsigned long error) { return ERR_GET_REASON(error); }

// No bytes at the moment: OpenSSL reports WANT_READ to its caller instead of an end of stream.
static inline void martlet_bio_want_read(BIO *bio) {
    BIO_clear_retry_flags(bio);
    BIO_set_retry_read(bio);
}

static inline STACK_OF(X509) *martlet_chain_new(void) { return sk_X509_new_null(); }
static inline int martlet_chain_push(STACK_OF(X509) *chain, X509 *certificate) {
    return sk_X509_push(chain, certificate) > 0;
}
static inline void martlet_chain_free(STACK_OF(X509) *chain) { sk_X509_pop_free(chain, X509_free); }
static inline int martlet_names_count(const GENERAL_NAMES *names) { return sk_GENERAL_NAME_num(names); }
static inline const GENERAL_NAME *martlet_names_value(const GENERAL_NAMES *names, int index) {
    return sk_GENERAL_NAME_value(names, index);
}

// The flags are macros of casts; RFC 4514 allows every escape that those of RFC 2253 make.
static inline int martlet_print_name(BIO *bio, const X509_NAME *name) {
    return X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253);
}
// OPENSSL_free is a macro with the place of the call.
static inline void martlet_openssl_free(void *memory) { OPENSSL_free(memory); }

// AES-256-CBC and HMAC-SHA256, encrypt-then-MAC, as RFC 5077 §4 recommends.
static inline int martlet_tls_prepare_ticket(EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *seal, const unsigned char *cipher_key,
    unsigned char *seal_key, size_t seal_size, unsigned char *vector, int is_sealing) {
    static const char digest[] = "SHA256";
    OSSL_PARAM parameters[3];
    parameters[0] = OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, seal_key, seal_size);
    parameters[1] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)digest, 0);
    parameters[2] = OSSL_PARAM_construct_end();
    if (EVP_MAC_CTX_set_params(seal, parameters) != 1) return 0;
    return EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, cipher_key, vector, is_sealing);
}

static inline long martlet_bio_bytes(BIO *bio, char **bytes) { return BIO_get_mem_data(bio, bytes); }

#endif
