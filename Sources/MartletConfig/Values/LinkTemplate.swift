/// The URL of a page that gets a one-time token: `https://app.example.com/reset?token={token}`.
///
/// `https`, or `http` of a loopback address, with `{token}` once in its query or fragment: servers write paths into
/// their logs.
@frozen public struct LinkTemplate: Sendable, Hashable {
    private static let placeholder = "{token}"

    private let before: String
    private let after: String

    /// `nil` if the text is not such a template.
    public init?(_ text: String) {
        let parts = Self.parts(of: text)
        guard parts.count == 2 else { return nil }
        (before, after) = (parts[0], parts[1])
        // The fragment is the page's own, and is not sent to its server.
        let sample = "\(before)token\(after)".utf8.split(
            separator: UInt8(ascii: "#"), maxSplits: 1, omittingEmptySubsequences: false
        ).map { String($0) ?? "" }
        guard let url = URLText(sample[0]), url.isTrustworthy, Self.isBehindPath(before),
            sample.dropFirst().allSatisfy(Self.isFragment)
        else { return nil }
    }

    /// The link with a token, which has only letters, digits, `-` and `_`.
    public func link(_ token: String) -> String { before + token + after }

    /// Whether the path ends before the token.
    private static func isBehindPath(_ text: String) -> Bool { text.utf8.contains { "?#".utf8.contains($0) } }

    private static func isFragment(_ text: String) -> Bool {
        text.utf8.allSatisfy { (0x21...0x7E).contains($0) && !"\"<>\\^`{|}#".utf8.contains($0) }
    }

    private static func parts(of text: String) -> [String] {
        let (bytes, mark) = (Array(text.utf8), Array(placeholder.utf8))
        var parts: [[UInt8]] = [[]]
        var index = 0
        while index < bytes.count {
            if bytes[index...].starts(with: mark) {
                parts.append([])
                index += mark.count
            } else {
                parts[parts.count - 1].append(bytes[index])
                index += 1
            }
        }
        return parts.map { String(decoding: $0, as: UTF8.self) }
    }
}

extension LinkTemplate: ConfigurationValue {
    public init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        guard let template = LinkTemplate(try node.text()) else {
            throw node.error(
                .configBadURL,
                "must be an https URL with {token} once in its query or fragment, such as "
                    + "https://app.example.com/reset?token={token}")
        }
        self = template
    }

    /// Its form in a schema.
    public static let shape = ConfigurationGrammar.Shape.pattern(#"^https?://[^{}]+[?#][^{}]*\{token\}[^{}]*$"#)
}
