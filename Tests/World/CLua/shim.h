// Lua 5.1, which Redis runs scripts with, and a function for scripts that calls back without unwinding the caller's frames.
#ifndef MARTLET_CLUA_SHIM_H
#define MARTLET_CLUA_SHIM_H

#include <lua5.1/lua.h>
#include <lua5.1/lauxlib.h>
#include <lua5.1/lualib.h>
#include <stdio.h>
#include <stdlib.h>

// Takes the arguments from the stack and pushes one value. Returns whether that is an error.
typedef int (*martlet_lua_command)(void *context, lua_State *state);

struct martlet_lua {
    lua_State *state;
    martlet_lua_command command;
    void *context;
};

// `redis.call` and `redis.pcall`. An error is raised here, where no frame of another language is left.
static int martlet_lua_call(lua_State *state) {
    struct martlet_lua *owner = (struct martlet_lua *)lua_touserdata(state, lua_upvalueindex(1));
    int failed = owner->command(owner->context, state);
    if (failed && lua_toboolean(state, lua_upvalueindex(2))) return lua_error(state);
    return 1;
}

static inline void martlet_lua_push_call(struct martlet_lua *owner, int raises) {
    lua_pushlightuserdata(owner->state, owner);
    lua_pushboolean(owner->state, raises);
    lua_pushcclosure(owner->state, martlet_lua_call, 2);
}

// NULL without memory.
static inline struct martlet_lua *martlet_lua_create(martlet_lua_command command, void *context) {
    struct martlet_lua *owner = (struct martlet_lua *)calloc(1, sizeof *owner);
    if (owner == NULL) return NULL;
    owner->state = luaL_newstate();
    if (owner->state == NULL) {
        free(owner);
        return NULL;
    }
    owner->command = command;
    owner->context = context;
    luaL_openlibs(owner->state);
    return owner;
}

static inline void martlet_lua_free(struct martlet_lua *owner) {
    lua_close(owner->state);
    free(owner);
}

// A number as Redis 7.0 writes it.
static inline int martlet_lua_number(double number, char *text, size_t size) {
    return snprintf(text, size, "%.17g", number);
}

#endif
