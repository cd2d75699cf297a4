// The border between the gateway and a simulated world: every system call and every reading of a clock by a thread that
// is in the world goes to the world's kernel, and one thread runs at a time.
//
// Linux hands a thread's system calls to a signal handler (Syscall User Dispatch, Linux 5.11), so what runs is the
// product as it is built, its direct system calls and those of its libraries included. Each thread has a stack and
// variables as the system makes them, and one thread of the system runs them all, which takes no time to change them.
#ifndef MARTLET_CWORLD_H
#define MARTLET_CWORLD_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

// What the kernel does for the border. Called on the thread in question, which is outside of the world meanwhile.
struct world_kernel {
    // A system call: its result, or a negated errno.
    long (*call)(int thread, long number, const long *arguments);
    // A thread is to be started: the number of the new thread, or a negated errno.
    int (*start)(int parent);
    // What the new thread runs. The kernel calls `body(context)` and never returns.
    void (*run)(int thread, void *(*body)(void *), void *context);
    // Waits until a thread has ended.
    void (*join)(int thread, int other);
    // The time of a clock, in nanoseconds.
    int64_t (*clock)(int thread, int clock);
    // Random bytes.
    void (*random)(void *bytes, size_t count);
};

// Makes the calling thread number 0, which is outside of the world until it enters. Once in a process.
int world_open(const struct world_kernel *kernel);
// Makes a copy of this process, in which all threads go on as they are in this one: its number, or 0 in the copy.
int world_fork(void);
// In a copy of this process: makes a copy of itself for each number that it reads, and writes the number of that process.
// The copies are children of the parent, and all the same: between them nothing here changes.
// Returns in each copy, with the number that was read; ends when there is nothing more to read.
int world_copies(int requests, int replies);
// From here on, system calls of this thread go to the kernel; and no longer.
void world_enter(void);
void world_leave(void);
// Has another thread go on, until this one is to go on again.
void world_turn(int thread);
// A system call to Linux, with a negated errno.
long world_system_call(long number, long a, long b, long c, long d, long e, long f);
// Where the program is loaded from; runs the program again without address randomization if it is randomized.
int world_pin(char **arguments);

// In a build that counts which lines are executed: adds what this process has counted to a file.
void world_write_profile(void);

// Keeps this process on one of the processors, which are counted round.
void world_use_processor(int number);

#endif
