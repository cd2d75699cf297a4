// hiredis as a codec: only its reply reader and its command formatter are used.
#ifndef MARTLET_CHIREDIS_SHIM_H
#define MARTLET_CHIREDIS_SHIM_H
#include <stdlib.h>
#include <hiredis/hiredis.h>

// A reader that rejects arrays of more than `elements` elements before it allocates memory for them.
struct martlet_redis_reader {
    redisReader *reader;
    redisReplyObjectFunctions functions;
    void *(*create_array)(const redisReadTask *, int);
    int elements;
};

static inline void *martlet_redis_create_array(const redisReadTask *task, int elements) {
    struct martlet_redis_reader *owner = (struct martlet_redis_reader *)task->privdata;
    if (owner == NULL || elements > owner->elements) return NULL;
    return owner->create_array(task, elements);
}

static inline struct martlet_redis_reader *martlet_redis_reader_create(int elements) {
    struct martlet_redis_reader *owner = (struct martlet_redis_reader *)calloc(1, sizeof *owner);
    if (owner == NULL) return NULL;
    owner->reader = redisReaderCreate();
    if (owner->reader == NULL) {
        free(owner);
        return NULL;
    }
    owner->functions = *owner->reader->fn;
    owner->create_array = owner->functions.createArray;
    owner->functions.createArray = martlet_redis_create_array;
    owner->elements = elements;
    owner->reader->fn = &owner->functions;
    owner->reader->privdata = owner;
    return owner;
}

static inline void martlet_redis_reader_free(struct martlet_redis_reader *owner) {
    redisReaderFree(owner->reader);
    free(owner);
}
#endif
