/// The style sheet of pages: light and dark, from 320 px.
enum PageStyle {
    /// Without a configured color.
    static let accent = RGBColor(0x0066CC)

    static func stylesheet(accent: RGBColor) -> Stylesheet {
        var sheet = Stylesheet(base)
        sheet.add(
            ":root",
            Palette.light.variables + Accent(accent, in: .light).variables + [
                ("wechat", Palette.weChat), ("wechat-text", Palette.weChatText),
            ])
        sheet.add(
            ":root", Palette.dark.variables + Accent(accent, in: .dark).variables, in: "prefers-color-scheme: dark")
        sheet.add(rules)
        sheet.add(account)
        return sheet
    }

    private static let base: StaticString = """
        :root { color-scheme: light dark; --s1: .25rem; --s2: .5rem; --s3: .75rem; --s4: 1rem; --s5: 1.5rem;
          --s6: 2rem;
          --s7: 3rem; --radius: .625rem;
          --edge: 0 0 0 1px rgb(0 0 0 / .06), 0 1px 2px rgb(0 0 0 / .04);
          --shadow: var(--edge), 0 12px 32px rgb(0 0 0 / .07); }
        @media (prefers-color-scheme: dark) { :root { --edge: 0 0 0 1px rgb(255 255 255 / .09);
          --shadow: var(--edge); } }
        """

    private static let rules: StaticString = """
        *, ::before, ::after { box-sizing: border-box; }
        html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
        body { margin: 0; min-height: 100vh; min-height: 100dvh; display: flex; flex-direction: column;
          align-items: center;
          justify-content: center; padding: var(--s6) var(--s4); background: var(--page); color: var(--ink);
          font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", sans-serif;
          overflow-wrap: anywhere; -webkit-font-smoothing: antialiased; }
        :lang(zh-Hans) body, body:lang(zh-Hans) { font-family: system-ui, -apple-system, "PingFang SC",
          "Microsoft YaHei", "Noto Sans CJK SC",
          "Noto Sans SC", sans-serif; }
        :lang(zh-Hant) body, body:lang(zh-Hant) { font-family: system-ui, -apple-system, "PingFang TC",
          "Microsoft JhengHei", "Noto Sans CJK TC",
          "Noto Sans TC", sans-serif; }
        main { width: 100%; max-width: 25rem; padding: var(--s6); background: var(--card); border-radius: 1rem;
          box-shadow: var(--shadow); }
        h1, h2, p, ul { margin: 0; padding: 0; }
        ul { list-style: none; }
        h1 { font-size: 1.5rem; line-height: 1.25; font-weight: 650; letter-spacing: -.015em; text-wrap: balance; }
        :lang(zh) h1 { letter-spacing: 0; line-height: 1.35; }
        .heading { margin-bottom: var(--s5); text-align: center; }
        .logo { display: block; width: 3.5rem; height: 3.5rem; object-fit: contain; border-radius: .75rem; }
        .heading .logo { margin: 0 auto var(--s4); }
        a { color: var(--accent-ink); text-decoration: none; }
        a:hover { text-decoration: underline; }
        .dim, .hint { color: var(--dim); }
        .lead { margin-bottom: var(--s5); color: var(--dim); text-align: center; text-wrap: pretty; }
        .button { display: flex; align-items: center; justify-content: center; gap: .5rem; width: 100%;
          min-height: 2.75rem;
          padding: var(--s2) var(--s4); border: 1px solid transparent; border-radius: var(--radius);
          font: inherit; font-weight: 600; line-height: 1.25; text-align: center; text-decoration: none;
          cursor: pointer; }
        .button:hover { text-decoration: none; }
        .primary { background: var(--accent); border-color: var(--accent-edge); color: var(--accent-text); }
        .primary:hover { background: var(--accent-hover); }
        .plain { background: var(--card); border-color: var(--border); color: var(--ink); }
        .plain:hover { background: var(--hover); }
        .danger { background: var(--card); border-color: var(--error); color: var(--error); }
        .danger:hover { background: var(--error-back); }
        .providers { display: grid; gap: var(--s3); }
        .providers .button { font-size: 1.1875rem; font-weight: 500; letter-spacing: -.01em; }
        .providers :lang(zh) .button, :lang(zh) .providers .button { font-size: 1.125rem; letter-spacing: 0; }
        .mark { flex: none; width: 1.25em; height: 1.25em; fill: currentColor; }
        .apple .mark { width: 1.1em; height: 1.1em; margin-top: -.14em; }
        .apple { background: var(--apple); color: var(--apple-text); }
        .wechat { background: var(--wechat); color: var(--wechat-text); }
        .button.apple:hover, .button.wechat:hover { opacity: .9; }
        .or { display: flex; align-items: center; gap: var(--s3); margin: var(--s5) 0; color: var(--dim);
          font-size: .875rem; }
        .or::before, .or::after { content: ""; flex: 1; height: 1px; background: var(--line); }
        form { display: grid; gap: var(--s4); }
        .field { display: grid; gap: var(--s1); }
        label { font-size: .875rem; font-weight: 550; }
        .field input { width: 100%; min-height: 2.75rem; padding: var(--s2) var(--s3); border: 1px solid var(--border);
          border-radius: var(--radius); background: var(--card); color: var(--ink); font: inherit; }
        .field input[aria-invalid] { border-color: var(--error); box-shadow: 0 0 0 1px var(--error); }
        .hint, .field .error, .check + .error { font-size: .875rem; }
        .error { color: var(--error); }
        form .button { margin-top: var(--s1); }
        :focus-visible { outline: 3px solid var(--accent-ink); outline-offset: 2px; border-radius: .25rem; }
        .button:focus-visible, input:focus-visible { border-radius: var(--radius); }
        .field input:focus-visible { outline-offset: -1px; outline-width: 2px; }
        .field input[aria-invalid]:focus-visible { outline-color: var(--error); }
        .notice { display: flex; gap: var(--s3); margin-bottom: var(--s5); padding: var(--s3) var(--s4);
          border-radius: var(--radius);
          font-size: .9375rem; line-height: 1.45; }
        .notice > div { flex: 1; min-width: 0; text-wrap: pretty; }
        .notice.error { background: var(--error-back); color: var(--error); }
        .notice.success { background: var(--success-back); color: var(--success); }
        .notice.note { background: var(--note-back); color: var(--note); }
        .icon { flex: none; width: 1.25rem; height: 1.25rem; margin-top: .1rem; fill: currentColor; }
        .reference { margin-top: var(--s4); color: var(--dim); font-size: .8125rem; text-align: center; }
        .notice .reference { margin-top: var(--s1); color: inherit; text-align: start; }
        code { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .9375em; }
        .aside { margin-top: var(--s5); color: var(--dim); font-size: .9375rem; text-align: center; }
        .aside a { font-weight: 600; }
        footer { display: grid; gap: var(--s1); justify-items: center; width: 100%; max-width: 25rem;
          margin-top: var(--s4); font-size: .875rem; }
        footer ul { display: flex; flex-wrap: wrap; justify-content: center; }
        footer a { display: flex; align-items: center; min-height: 2.75rem; padding: 0 var(--s3); color: var(--dim);
          text-align: center; }
        footer a[aria-current] { color: var(--ink); font-weight: 600; }
        @media (max-width: 30rem) {
          body { padding: 0 0 var(--s4); justify-content: flex-start; background: var(--card); }
          main { padding: var(--s6) var(--s4) var(--s4); box-shadow: none; border-radius: 0; background: none; }
          footer { margin-top: auto; padding: 0 var(--s2); }
        }
        @media (prefers-reduced-motion: no-preference) { .button, input { transition: background-color .15s,
          opacity .15s; } }
        @media (forced-colors: active) { main, .notice, .token { border: 1px solid CanvasText;
          } .mark, .icon { fill: CanvasText; } }
        """

    private static let account: StaticString = """
        .wide { justify-content: flex-start; }
        .wide main, .wide footer { max-width: 44rem; }
        .wide main { padding: 0; background: none; box-shadow: none; border-radius: 0; display: grid; gap: var(--s5); }
        .masthead { display: flex; flex-wrap: wrap; align-items: center; gap: var(--s3) var(--s4); }
        .masthead > div { flex: 1 1 12rem; min-width: 0; }
        .masthead form { flex: none; }
        .wide .notice { margin: 0; }
        section { min-width: 0; padding: var(--s5); background: var(--card); border-radius: 1rem;
          box-shadow: var(--edge); }
        h2 { font-size: 1.125rem; line-height: 1.3; font-weight: 650; }
        h2 + .dim { margin-top: var(--s1); }
        .rows { margin: var(--s4) 0 0; }
        .rows li { display: flex; flex-wrap: wrap; align-items: center; gap: var(--s3) var(--s4);
          padding: var(--s4) 0; border-top: 1px solid var(--line); }
        .rows:last-child li:last-child { padding-bottom: 0; }
        .what { flex: 1 1 11rem; min-width: 0; }
        .what .dim { font-size: .875rem; }
        .rows form { margin-inline-start: auto; }
        .name { font-weight: 600; }
        .badge { display: inline-block; margin-inline-start: var(--s1); padding: 0 var(--s2); border-radius: 1rem;
          background: var(--success-back);
          color: var(--success); font-size: .8125rem; font-weight: 600; line-height: 1.5rem; white-space: nowrap; }
        .attention { color: var(--error); }
        .token { display: grid; place-items: center; flex: none; align-self: start; width: 2.5rem; height: 2.5rem;
          border-radius: var(--radius);
          background: var(--note-back); color: var(--note); font-weight: 650; }
        .token.apple { background: var(--apple); color: var(--apple-text); }
        .token.wechat { background: var(--wechat); color: var(--wechat-text); }
        .wide form .button { width: auto; margin-top: 0; justify-self: start; }
        .small { font-size: .9375rem; padding: var(--s1) var(--s4); }
        section > form, section > p + p { margin-top: var(--s4); }
        .narrow { max-width: 22rem; }
        section > p .button { width: auto; display: inline-flex; }
        .check { display: flex; gap: var(--s3); align-items: center; min-height: 2.75rem; }
        .check input { flex: none; width: 1.25rem; height: 1.25rem; margin: 0; accent-color: var(--accent-ink); }
        .check label { flex: 1; font-size: 1rem; font-weight: 400; padding: var(--s2) 0; }
        .hidden { position: absolute; width: 1px; height: 1px; padding: 0; border: 0; opacity: 0;
          pointer-events: none; }
        @media (max-width: 30rem) {
          .wide { background: var(--page); }
          .wide main { padding: var(--s5) var(--s4) 0; }
          .wide footer { margin-top: var(--s5); }
          section { padding: var(--s4); border-radius: var(--radius); }
        }
        """
}
