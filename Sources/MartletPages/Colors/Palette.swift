/// The colors of pages in one color scheme; tests measure their contrasts.
struct Palette {
    /// Behind everything.
    let page: RGBColor
    /// Behind forms and lists.
    let card: RGBColor
    /// Text.
    let ink: RGBColor
    /// Text that is less important.
    let dim: RGBColor
    /// Lines that only separate.
    let line: RGBColor
    /// Borders of fields and of buttons without a color of their own.
    let border: RGBColor
    /// Behind such buttons while the pointer is over them.
    let hover: RGBColor
    let error: RGBColor
    let errorBack: RGBColor
    let success: RGBColor
    let successBack: RGBColor
    let note: RGBColor
    let noteBack: RGBColor
    /// Apple's button: white on black where the page is light, black on white where it is dark.
    let apple: RGBColor
    let appleText: RGBColor

    /// WeChat's green is too light for white text; its text is dark.
    static let weChat = RGBColor(0x07C160)
    static let weChatText = RGBColor(0x04180D)

    static let light = Palette(
        page: RGBColor(0xF5F5F7), card: .white, ink: RGBColor(0x1D1D1F), dim: RGBColor(0x5E5E66),
        line: RGBColor(0xE4E4E9), border: RGBColor(0x86868D), hover: RGBColor(0xF2F2F5),
        error: RGBColor(0xA8201A), errorBack: RGBColor(0xFDEEEC), success: RGBColor(0x14602E),
        successBack: RGBColor(0xE6F5EA), note: RGBColor(0x3D4250), noteBack: RGBColor(0xEEF0F5),
        apple: .black, appleText: .white)

    static let dark = Palette(
        page: RGBColor(0x0E0E10), card: RGBColor(0x1B1B1E), ink: RGBColor(0xF4F4F6), dim: RGBColor(0xA6A6AE),
        line: RGBColor(0x34343A), border: RGBColor(0x7C7C86), hover: RGBColor(0x28282D),
        error: RGBColor(0xFFB4AB), errorBack: RGBColor(0x3B1714), success: RGBColor(0x8FE0AD),
        successBack: RGBColor(0x10311E), note: RGBColor(0xC9CEDA), noteBack: RGBColor(0x262A33),
        apple: .white, appleText: .black)

    /// The custom properties of the style sheet.
    var variables: [(name: StaticString, color: RGBColor)] {
        [
            ("page", page), ("card", card), ("ink", ink), ("dim", dim), ("line", line), ("border", border),
            ("hover", hover), ("error", error), ("error-back", errorBack), ("success", success),
            ("success-back", successBack), ("note", note), ("note-back", noteBack), ("apple", apple),
            ("apple-text", appleText),
        ]
    }
}
