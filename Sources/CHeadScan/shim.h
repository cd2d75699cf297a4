// SIMD operations that Swift's vectors lack, such as comparison masks as integers.
#ifndef MARTLET_CHEADSCAN_SHIM_H
#define MARTLET_CHEADSCAN_SHIM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef signed char martlet_block __attribute__((ext_vector_type(16)));
typedef _Bool martlet_block_bits __attribute__((ext_vector_type(16)));

// The highest bit of each lane, the first lane lowest: one instruction on x86-64.
static inline uint32_t martlet_lane_bits(martlet_block block) {
    martlet_block_bits bits = __builtin_convertvector(block < 0, martlet_block_bits);
    uint16_t number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

typedef unsigned char martlet_bytes __attribute__((ext_vector_type(16)));

// The first block of 128 bytes from `bytes` (aligned to 16) that has a byte outside 0x20-0x7E, or that is not complete
// before `end`.
static inline const void *martlet_end_of_text_by_16(const void *bytes, const void *end) {
    const martlet_bytes *block = (const martlet_bytes *)bytes;
    const martlet_bytes *last = block + ((const char *)end - (const char *)bytes) / 128 * 8;
    for (; block != last; block += 8) {
        // After subtracting 0x20, printable bytes are 0-0x5E and all others are greater.
        martlet_bytes greatest = block[0] - 0x20;
#pragma clang loop unroll(full)
        for (int index = 1; index < 8; index++) {
            greatest = __builtin_elementwise_max(greatest, (martlet_bytes)(block[index] - 0x20));
        }
        if (martlet_lane_bits((martlet_block)(greatest > 0x5E))) break;
    }
    return block;
}

#ifdef __x86_64__
typedef unsigned char martlet_wide_bytes __attribute__((ext_vector_type(32), aligned(16)));
typedef _Bool martlet_wide_bits __attribute__((ext_vector_type(32)));

// The same with 32-byte registers (AVX2).
__attribute__((target("avx2")))
static inline const void *martlet_end_of_text_by_32(const void *bytes, const void *end) {
    const martlet_wide_bytes *block = (const martlet_wide_bytes *)bytes;
    const martlet_wide_bytes *last = block + ((const char *)end - (const char *)bytes) / 128 * 4;
    for (; block != last; block += 4) {
        martlet_wide_bytes greatest = block[0] - 0x20;
#pragma clang loop unroll(full)
        for (int index = 1; index < 4; index++) {
            greatest = __builtin_elementwise_max(greatest, (martlet_wide_bytes)(block[index] - 0x20));
        }
        martlet_wide_bits bits = __builtin_convertvector(greatest > 0x5E, martlet_wide_bits);
        uint32_t number;
        memcpy(&number, &bits, sizeof number);
        if (number) break;
    }
    return block;
}
#endif

static inline const void *martlet_end_of_text(const void *bytes, const void *end) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) return martlet_end_of_text_by_32(bytes, end);
#endif
    return martlet_end_of_text_by_16(bytes, end);
}

// Whether an `m` stands three bytes before a `_`, by blocks of 16; `count` is at least 19.
static inline bool martlet_has_prefix_form_by_16(const char *bytes, size_t count) {
    martlet_bytes found = 0;
    const size_t last = count - 19;
    for (size_t index = 0;; index += 16) {
        if (index > last) index = last;
        martlet_bytes first, fourth;
        memcpy(&first, bytes + index, sizeof first);
        memcpy(&fourth, bytes + index + 3, sizeof fourth);
        found |= (martlet_bytes)(first == 'm') & (martlet_bytes)(fourth == '_');
        if (index == last) break;
    }
    return martlet_lane_bits((martlet_block)found) != 0;
}

#ifdef __x86_64__
// The same with 32-byte registers (AVX2); `count` is at least 35.
__attribute__((target("avx2")))
static inline bool martlet_has_prefix_form_by_32(const char *bytes, size_t count) {
    martlet_wide_bytes found = 0;
    const char *last = bytes + (count - 35);
#pragma clang loop unroll_count(4)
    for (; bytes < last; bytes += 32) {
        martlet_wide_bytes first, fourth;
        memcpy(&first, bytes, sizeof first);
        memcpy(&fourth, bytes + 3, sizeof fourth);
        found |= (martlet_wide_bytes)(first == 'm') & (martlet_wide_bytes)(fourth == '_');
    }
    martlet_wide_bytes first, fourth;
    memcpy(&first, last, sizeof first);
    memcpy(&fourth, last + 3, sizeof fourth);
    found |= (martlet_wide_bytes)(first == 'm') & (martlet_wide_bytes)(fourth == '_');
    martlet_wide_bits bits = __builtin_convertvector((martlet_wide_bytes)(found != 0), martlet_wide_bits);
    uint32_t number;
    memcpy(&number, &bits, sizeof number);
    return number != 0;
}
#endif

// Whether an `m` stands three bytes before a `_` anywhere in a text.
static inline bool martlet_has_prefix_form(const void *text, size_t count) {
    const char *bytes = (const char *)text;
#ifdef __x86_64__
    if (count >= 35 && __builtin_cpu_supports("avx2")) return martlet_has_prefix_form_by_32(bytes, count);
#endif
    if (count >= 19) return martlet_has_prefix_form_by_16(bytes, count);
    for (size_t index = 0; index + 3 < count; index++) {
        if (bytes[index] == 'm' && bytes[index + 3] == '_') return true;
    }
    return false;
}

// Whether `count` bytes are equal.
static inline bool martlet_same(const void *left, const void *right, size_t count) {
    return memcmp(left, right, count) == 0;
}

// The values of base64url digits, 0 to 63; 255 for a byte that is not a digit.
static inline martlet_bytes martlet_base64url_values(martlet_bytes digits) {
    martlet_bytes upper = digits - 'A', lower = digits - 'a', number = digits - '0';
    martlet_bytes is_upper = (martlet_bytes)(upper < 26), is_lower = (martlet_bytes)(lower < 26);
    martlet_bytes is_number = (martlet_bytes)(number < 10);
    martlet_bytes is_minus = (martlet_bytes)(digits == '-'), is_line = (martlet_bytes)(digits == '_');
    martlet_bytes known = is_upper | is_lower | is_number | is_minus | is_line;
    return (upper & is_upper) | ((lower + 26) & is_lower) | ((number + 52) & is_number) | (is_minus & 62)
        | (is_line & 63) | ~known;
}

#ifdef __x86_64__
// Decodes `count` blocks of 32 digits to 24 bytes each, and writes 4 bytes past the last one. All values are ORed into
// `seen`.
__attribute__((target("avx2")))
static inline void martlet_base64url_blocks(const void *text, size_t count, void *output, martlet_bytes *seen) {
    typedef short pairs __attribute__((ext_vector_type(16)));
    typedef char lanes __attribute__((vector_size(32)));
    const lanes order = {2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1,
                         2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1};
    martlet_wide_bytes any = 0;
    char *out = (char *)output;
    for (size_t block = 0; block < count; block++, out += 24) {
        martlet_wide_bytes digits;
        memcpy(&digits, (const char *)text + 32 * block, sizeof digits);
        martlet_wide_bytes upper = digits - 'A', lower = digits - 'a', number = digits - '0';
        martlet_wide_bytes is_upper = (martlet_wide_bytes)(upper < 26), is_lower = (martlet_wide_bytes)(lower < 26);
        martlet_wide_bytes is_number = (martlet_wide_bytes)(number < 10);
        martlet_wide_bytes is_minus = (martlet_wide_bytes)(digits == '-'), is_line = (martlet_wide_bytes)(digits == '_');
        martlet_wide_bytes known = is_upper | is_lower | is_number | is_minus | is_line;
        martlet_wide_bytes values = (upper & is_upper) | ((lower + 26) & is_lower) | ((number + 52) & is_number)
            | (is_minus & 62) | (is_line & 63) | ~known;
        any |= values;
        // Join two values to 12 bits, two of those to 24 bits, and then put the bytes in order.
        lanes twelve = (lanes)__builtin_ia32_pmaddubsw256((lanes)values, (lanes)((pairs)(short)0x0140));
        lanes whole = (lanes)__builtin_ia32_pmaddwd256(
            (short __attribute__((vector_size(32))))twelve, (short __attribute__((vector_size(32))))((pairs){
                0x1000, 1, 0x1000, 1, 0x1000, 1, 0x1000, 1, 0x1000, 1, 0x1000, 1, 0x1000, 1, 0x1000, 1}));
        lanes bytes = (lanes)__builtin_ia32_pshufb256(whole, order);
        memcpy(out, &bytes, 16);
        memcpy(out + 12, (const char *)&bytes + 16, 16);
    }
    martlet_bytes halves[2];
    memcpy(halves, &any, sizeof halves);
    *seen |= halves[0] | halves[1];
}

static inline bool martlet_has_wide_blocks(void) { return __builtin_cpu_supports("avx2"); }
#else
static inline void martlet_base64url_blocks(const void *text, size_t count, void *output, martlet_bytes *seen) {}
static inline bool martlet_has_wide_blocks(void) { return false; }
#endif

#endif
