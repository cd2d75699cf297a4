#ifndef CDASHBOARD_H
#define CDASHBOARD_H

#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/// A file of the dashboard, as bytes that are always there.
struct martlet_file {
    const uint8_t *bytes;
    size_t count;
};

struct martlet_file martlet_dashboard_page(void);
struct martlet_file martlet_dashboard_style(void);
struct martlet_file martlet_dashboard_script(void);

#pragma clang assume_nonnull end

#endif
