#ifndef CSTART_H
#define CSTART_H

#pragma clang assume_nonnull begin

/// The number of arguments that the program was started with, its name included.
int martlet_argument_count(void);

/// One of them; NULL from their number on.
const char *_Nullable martlet_argument(int index);

#pragma clang assume_nonnull end

#endif
