internal import MartletPages

/// The stylesheet of the dashboard, with a light and a dark color scheme.
enum DashboardStyle {
    static let sheet = Stylesheet(
        """
        :root { color-scheme: light dark; --page: #f5f6f8; --card: #fff; --ink: #16202c; --dim: #5b6876; --line: #e2e6eb;
          --accent: #24557a; --ok: #17693a; --ok-back: #dcf3e4; --warning: #7d5200; --warning-back: #fdeecb;
          --error: #a11d23; --error-back: #fde1e1; }
        @media (prefers-color-scheme: dark) { :root { --page: #0f1419; --card: #182028; --ink: #e4eaf0; --dim: #93a1af;
          --line: #2a343e; --accent: #8dc1e8; --ok: #7fdca0; --ok-back: #143822; --warning: #f3c667; --warning-back: #3d2f0c;
          --error: #ff9f9f; --error-back: #4a1c1f; } }
        * { box-sizing: border-box; }
        body { margin: 0; background: var(--page); color: var(--ink); font: 14px/1.45 system-ui, "Segoe UI", Roboto, sans-serif; }
        header { display: flex; flex-wrap: wrap; gap: 4px 16px; align-items: center; padding: 14px 24px; background: var(--card);
          border-bottom: 1px solid var(--line); }
        .name b { font-size: 18px; letter-spacing: .02em; } .name span, .where { color: var(--dim); }
        .where { flex: 1; font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 12px; }
        .state { font-weight: 700; padding: 4px 14px; border-radius: 999px; }
        main { max-width: 1280px; margin: 0 auto; padding: 16px 24px; display: grid; gap: 16px; }
        .pair { display: grid; gap: 16px; grid-template-columns: repeat(auto-fit, minmax(min(480px, 100%), 1fr)); align-items: start; }
        section { min-width: 0; background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 18px; }
        section.tiles { display: grid; gap: 12px; grid-template-columns: repeat(auto-fit, minmax(132px, 1fr)); padding: 0;
          background: none; border: 0; }
        .tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px; }
        .tile strong { display: block; font-size: 21px; font-weight: 650; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
        h2 { margin: 0 0 8px; font-size: 12px; font-weight: 650; letter-spacing: .06em; text-transform: uppercase; color: var(--dim); }
        .tile h2 { margin: 0; } small { color: var(--dim); } .empty { margin: 0; color: var(--dim); }
        .scroll { overflow-x: auto; }
        table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
        th, td { padding: 5px 12px 5px 0; text-align: left; vertical-align: baseline; border-top: 1px solid var(--line);
          white-space: nowrap; }
        thead th, section > table tr:first-child > * { border-top: 0; }
        thead th { color: var(--dim); font-weight: 500; font-size: 12px; }
        tbody th { font-weight: 600; } th:last-child, td:last-child { padding-right: 0; }
        .n { text-align: right; } .wide { white-space: normal; overflow-wrap: anywhere; width: 40%; }
        section > table .wide { width: auto; }
        .badge { padding: 1px 9px; border-radius: 999px; font-weight: 600; font-size: 12px; }
        .ok { color: var(--ok); background: var(--ok-back); } .warning { color: var(--warning); background: var(--warning-back); }
        .error { color: var(--error); background: var(--error-back); } .c4 { color: var(--warning); } .c5 { color: var(--error); font-weight: 650; }
        .bar { display: block; width: 100%; height: 8px; } .bar rect { height: 8px; rx: 4px; fill: var(--accent); opacity: .55; }
        .n + .wide, th.n + th:not(.n) { padding-left: 14px; }
        footer { padding: 4px 24px 28px; text-align: center; color: var(--dim); font-size: 12px; } a { color: var(--accent); }
        """)
}
