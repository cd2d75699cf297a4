/// A style sheet of our own: literals, and colors that were validated by their type.
package struct Stylesheet: Sendable {
    package private(set) var css: String

    package init(_ css: StaticString) { self.css = "\(css)" }

    /// Adds a rule with custom properties to the end, such as `:root { --ink: #1d1d1f }`.
    package mutating func add(
        _ selector: StaticString, _ colors: [(name: StaticString, color: RGBColor)], in media: StaticString? = nil
    ) {
        let declarations = colors.map { "--\($0.name): \($0.color.css);" }.joined(separator: " ")
        let rule = "\(selector) { \(declarations) }"
        css += media.map { "\n@media (\($0)) { \(rule) }" } ?? "\n\(rule)"
    }

    /// Adds literal rules to the end.
    package mutating func add(_ rules: StaticString) { css += "\n\(rules)" }
}
