#include "CDashboard.h"

// The compiler reads the files themselves: SwiftPM's resources would become array literals in Swift, whose compilation
// takes minutes, and texts in Swift could not be edited, checked and tested as what they are.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const uint8_t page[] = {
#embed "../MartletAdmin/Dashboard/dashboard.html"
};

static const uint8_t style[] = {
#embed "../MartletAdmin/Dashboard/dashboard.css"
};

static const uint8_t script[] = {
#embed "../MartletAdmin/Dashboard/dashboard.js"
};

struct martlet_file martlet_dashboard_page(void) { return (struct martlet_file){page, sizeof page}; }
struct martlet_file martlet_dashboard_style(void) { return (struct martlet_file){style, sizeof style}; }
struct martlet_file martlet_dashboard_script(void) { return (struct martlet_file){script, sizeof script}; }
