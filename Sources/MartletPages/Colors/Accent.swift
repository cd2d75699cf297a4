/// The configured accent color, adapted to one color scheme.
///
/// Any color can be configured, so each use of it is derived such that its contrast suffices.
struct Accent {
    /// WCAG 2.2 §1.4.3, for text.
    static let textContrast = 4.5
    /// WCAG 2.2 §1.4.11, for borders and the focus ring.
    static let edgeContrast = 3.0

    /// Of the main button.
    let fill: RGBColor
    /// Black or white, whichever is easier to read on `fill`.
    let fillText: RGBColor
    /// `fill` while the pointer is over the button; away from `fillText`, so that the contrast grows.
    let fillHover: RGBColor
    /// Of the main button's border: `fill`, unless that can hardly be seen on the page.
    let edge: RGBColor
    /// Of links and the focus ring.
    let ink: RGBColor

    init(_ color: RGBColor, in palette: Palette) {
        let isLight = palette.page.luminance > palette.ink.luminance
        let limit: RGBColor = isLight ? .black : .white
        let backs = [palette.page, palette.card]
        fill = color
        fillText = color.contrast(with: .white) >= color.contrast(with: .black) ? .white : .black
        fillHover = color.mixed(with: fillText == .white ? .black : .white, part: 0.14)
        edge = Self.strengthen(color, toward: limit, on: backs, to: Self.edgeContrast)
        ink = Self.strengthen(color, toward: limit, on: backs, to: Self.textContrast)
    }

    /// The first mix of both colors with that contrast.
    private static func strengthen(
        _ color: RGBColor, toward limit: RGBColor, on backs: [RGBColor], to contrast: Double
    ) -> RGBColor {
        for step in 0..<20 {
            let mix = color.mixed(with: limit, part: Double(step) / 20)
            if backs.allSatisfy({ mix.contrast(with: $0) >= contrast }) { return mix }
        }
        return limit
    }

    /// The custom properties of the style sheet.
    var variables: [(name: StaticString, color: RGBColor)] {
        [
            ("accent", fill), ("accent-text", fillText), ("accent-hover", fillHover), ("accent-edge", edge),
            ("accent-ink", ink),
        ]
    }
}
