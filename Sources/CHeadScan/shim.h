// What Swift's vectors cannot say: which lanes a comparison has found, as the bits of a number.
#ifndef MARTLET_CHEADSCAN_SHIM_H
#define MARTLET_CHEADSCAN_SHIM_H

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

// Whether 128 bytes are all 0x20-0x7E; `bytes` is a multiple of sixteen.
static inline _Bool martlet_is_text(const void *bytes) {
    const martlet_bytes *block = (const martlet_bytes *)bytes;
    martlet_bytes least = block[0], greatest = block[0];
#pragma clang loop unroll(full)
    for (int index = 1; index < 8; index++) {
        least = __builtin_elementwise_min(least, block[index]);
        greatest = __builtin_elementwise_max(greatest, block[index]);
    }
    // What is under 0x20 or over 0x7E gets the highest bit by one of these.
    return martlet_lane_bits((martlet_block)((least - 0x20) | greatest | (greatest + 1))) == 0;
}

#endif
